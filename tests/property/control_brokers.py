"""Model brokers: what they make of the controller's requests, and of the ISRs they lead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from state.partitions.changes import EPOCH_DURING_DELETE, LEADER_DURING_DELETE
from state.protocol_errors import ProtocolError
from streaming.sinks.channel import Answer
from streaming.sinks.plan import SharedRequest
from streaming.wire.apis import ApiKey
from streaming.wire.partition_rows import PartitionRows

Place = tuple[str, int]

_NO_EPOCH = -1  # of a StopReplica that needs none
_ASKS_AGAIN = {ProtocolError.OPERATION_NOT_ATTEMPTED, ProtocolError.INELIGIBLE_REPLICA}


@dataclass(slots=True)
class Replica:
    """A replica that a broker runs, as LeaderAndIsr and answers to AlterPartition have it.

    asked: id of the AlterPartition in flight. waits: for a higher leader epoch, since it was
    refused (Partition.handleAlterPartitionError).
    """

    leader: int
    epoch: int
    version: int
    assigned: list[int]
    asked: str | None = None
    waits: bool = False

    def answered(self, error: int, answer: dict[str, Any]) -> None:
        """Take the answer to what it asked; error: of the request as a whole."""
        self.asked = None
        if error:
            return
        if answer["error"]:
            self.waits = answer["error"] not in _ASKS_AGAIN
        elif answer["leader_epoch"] != self.epoch or answer["partition_epoch"] < self.version:
            self.waits = True
        else:
            self.version = answer["partition_epoch"]


@dataclass(slots=True)
class Broker:
    """A broker's process; registered under another epoch each time. told: (leader, epoch) of every
    partition that UpdateMetadata named.
    """

    id: int
    alive: bool = True
    leaving: bool = False
    starts: int = 0
    replicas: dict[Place, Replica] = field(default_factory=dict)
    told: dict[Place, tuple[int, int]] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        return 100 + 1_000 * self.starts + self.id

    def stop(self) -> None:
        self.alive = self.leaving = False
        self.replicas, self.told = {}, {}

    def start(self) -> None:
        self.stop()
        self.alive = True
        self.starts += 1

    def leads(self) -> list[Place]:
        """Where it believes to lead."""
        return sorted(place for place, one in self.replicas.items() if one.leader == self.id)

    def take(self, request: SharedRequest) -> Answer:
        """Do as it is told (ReplicaManager), each partition without an error."""
        errors = []
        for place, row in _places(request.rows):
            match request.api:
                case ApiKey.LEADER_AND_ISR:
                    self._lead_or_follow(place, request.rows, row)
                case ApiKey.STOP_REPLICA:
                    if self._is_stopped(place, int(request.rows.leader_epoch[row])):
                        del self.replicas[place]
                case ApiKey.UPDATE_METADATA:
                    self._hear(place, request.rows, row)
            errors.append({"topic_name": place[0], "partition_index": place[1], "error_code": 0})
        return Answer(self.id, self.epoch, request, {"error_code": 0, "partition_errors": errors})

    def would_delete(self, request: SharedRequest) -> list[Place]:
        """The replicas that a request has it delete, other than those of topics that go."""
        if request.api is not ApiKey.STOP_REPLICA:
            return []
        rows, epochs = request.rows, request.rows.leader_epoch.tolist()
        return [
            place
            for place, row in _places(rows)
            if rows.delete_partition[row]
            and epochs[row] != EPOCH_DURING_DELETE
            and self._is_stopped(place, epochs[row])
        ]

    def _lead_or_follow(self, place: Place, rows: PartitionRows, row: int) -> None:
        """ReplicaManager.becomeLeaderOrFollower: an epoch that is known already says nothing."""
        epoch, known = int(rows.leader_epoch[row]), self.replicas.get(place)
        if known is None or epoch > known.epoch:
            assigned = [one for one in rows.replicas[row].tolist() if one >= 0]
            version = int(rows.partition_epoch[row])
            self.replicas[place] = Replica(int(rows.leader[row]), epoch, version, assigned)

    def _is_stopped(self, place: Place, epoch: int) -> bool:
        """ReplicaManager.stopReplicas: an old epoch stops nothing."""
        known = self.replicas.get(place)
        any_epoch = epoch in (_NO_EPOCH, EPOCH_DURING_DELETE)
        return known is not None and (any_epoch or epoch >= known.epoch)

    def _hear(self, place: Place, rows: PartitionRows, row: int) -> None:
        leader = int(rows.leader[row])
        if leader == LEADER_DURING_DELETE:
            self.told.pop(place, None)
        else:
            self.told[place] = (leader, int(rows.leader_epoch[row]))


def _places(rows: PartitionRows) -> Iterator[tuple[Place, int]]:
    names = [rows.topic_names[at] for at in rows.topic_index.tolist()]
    for row, (name, partition) in enumerate(zip(names, rows.partition.tolist(), strict=True)):
        yield (name, partition), row
