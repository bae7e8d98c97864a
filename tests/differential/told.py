"""What a broker knows in the end from the requests of its controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from streaming.wire.apis import ApiKey
from streaming.wire.requests import Request
from tests.fixtures.stub_brokers import leader_and_isr_states, metadata_states

DELETED = -2
Partition = tuple[str, int]
_IN_METADATA = ("leader", "isr", "replicas", "offline_replicas")
_IN_LEADERSHIP = (
    "leader",
    "isr",
    "replicas",
    "adding_replicas",
    "removing_replicas",
    "leader_recovery_state",
)


@dataclass(frozen=True, slots=True)
class State:
    """A partition as it was told last; epochs: leader epoch and version of the state znode."""

    fields: dict[str, Any]
    epochs: tuple[int, int]


@dataclass(slots=True)
class Told:
    """metadata: from UpdateMetadata; hosted: from LeaderAndIsr, until StopReplica; stopped: by the
    last StopReplica, True when the data was to be deleted.
    """

    metadata: dict[Partition, State] = field(default_factory=dict)
    hosted: dict[Partition, State] = field(default_factory=dict)
    stopped: dict[Partition, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, requests: Sequence[Request], controller_id: int) -> Told:
        """Fold requests, in the order they came."""
        told = cls()
        for request in requests:
            assert request.body["controller_id"] == controller_id
            match request.header.api_key:
                case ApiKey.UPDATE_METADATA:
                    told._update_metadata(request)
                case ApiKey.LEADER_AND_ISR:
                    told._lead(request)
                case ApiKey.STOP_REPLICA:
                    told._stop(request)
        return told

    def _update_metadata(self, request: Request) -> None:
        for topic, state in metadata_states(request):
            at = (topic, state["partition_index"])
            if state["leader"] == DELETED:
                self.metadata.pop(at, None)
                continue
            fields = {name: state[name] for name in _IN_METADATA}
            self.metadata[at] = State(fields, (state["leader_epoch"], state["zk_version"]))

    def _lead(self, request: Request) -> None:
        for topic, _, state in leader_and_isr_states(request):
            at = (topic, state["partition_index"])
            fields = {name: state[name] for name in _IN_LEADERSHIP}
            self.hosted[at] = State(fields, (state["leader_epoch"], state["partition_epoch"]))
            self.stopped.pop(at, None)

    def _stop(self, request: Request) -> None:
        for topic in request.body["topic_states"]:
            for state in topic["partition_states"]:
                at = (topic["topic_name"], state["partition_index"])
                self.hosted.pop(at, None)
                self.stopped[at] = state["delete_partition"] or self.stopped.get(at, False)


def live_brokers(requests: Sequence[Request]) -> set[int]:
    """Return the brokers that the last UpdateMetadata lists; none when there was none."""
    for request in reversed(requests):
        if request.header.api_key is ApiKey.UPDATE_METADATA:
            return {broker["id"] for broker in request.body["live_brokers"]}
    return set()
