"""A small cluster for unit tests: events in, decisions as plain rows and objects out."""

from __future__ import annotations

from typing import Any

import orjson

from checkpoints.machine_format import decode_machine
from checkpoints.replay import States, fold_batch
from state.cluster.cluster import Cluster
from state.decisions import BLOCK_KINDS, Action, DecisionKind
from state.events import Event
from state.partitions.slot import Slot
from state.routing import CLUSTER_KEY, GROUP_SLOTS, Layout
from tests.fixtures.decision_rows import rows_of
from tests.fixtures.story import OURSELVES

Said = dict[str, Any]


def broker(id_: int, epoch: int, rack: str | None = None) -> Said:
    return {"id": id_, "epoch": epoch, "rack": rack, "endpoints": []}


class Controller:
    """Folds events one at a time, into one slot and the cluster machine."""

    def __init__(self, brokers: tuple[int, ...] = (1, 2, 3), **config: Any) -> None:
        """Be elected with epoch 5, brokers of epoch 100 + id, and nothing to load."""
        self.states: States = {}
        self.offset = 0
        self.elect(5, **config)
        self.brokers(registered=[broker(id_, 100 + id_) for id_ in brokers])
        self.happen("resync_completed", topics=0)

    def elect(self, epoch: int, **config: Any) -> None:
        """Be elected; what is loaded follows."""
        self.happen(
            "controller_elected",
            controller_id=OURSELVES,
            epoch=epoch,
            epoch_zk_version=epoch,
            endpoints=[],
            config={name.replace("_", "."): value for name, value in config.items()},
        )

    def happen(
        self, kind: str, key: str = "", *, several: DecisionKind | None = None, **body: Any
    ) -> dict[DecisionKind, Any]:
        """Fold an event and return the decisions by kind: rows, or JSON objects.

        Of the kind `several` there may be more than one JSON object: a list.
        """
        event = Event(self.offset, 1_000 + self.offset, kind, key, orjson.dumps(body))
        self.offset += 1
        said: dict[DecisionKind, Any] = {}
        for decision in fold_batch(self.states, [event], Layout(1, GROUP_SLOTS)):
            if decision.kind is several:
                said.setdefault(several, []).append(orjson.loads(decision.body))
                continue
            assert decision.kind not in said, f"several decisions of kind {decision.kind}"
            block = decision.kind in BLOCK_KINDS
            said[decision.kind] = (
                rows_of(decision.body)[0] if block else orjson.loads(decision.body)
            )
        return said

    def brokers(self, **changed: Any) -> dict[DecisionKind, Any]:
        """Change the registrations."""
        return self.happen("broker_registrations_changed", **changed)

    def topic(
        self, name: str, replicas: list[list[int]], states: list[Any] | None = None, **more: Any
    ) -> dict[DecisionKind, Any]:
        """Observe a topic with partitions 0, 1, ..."""
        numbers = list(range(len(replicas)))
        body = {"topic": name, "partitions": numbers, "replicas": replicas, "states": states}
        return self.happen("topic_observed", name, **body, **more)

    def found(self, cause: str, state: list[Any] | None, **more: Any) -> dict[DecisionKind, Any]:
        """Read the state of t-0 again."""
        return self.happen(
            "partition_states_observed",
            "t",
            topic="t",
            cause=cause,
            partitions=[0],
            states=[state],
            **more,
        )

    def alter(self, isr: list[int], **wrong: Any) -> dict[DecisionKind, Any]:
        """Partition 0 of topic t gets an ISR from broker 1, with what is said to be wrong."""
        row = self.row("t", 0)
        partition = {
            "partition": wrong.pop("partition", 0),
            "leader_epoch": wrong.pop("leader_epoch", row["leader_epoch"]),
            "partition_epoch": wrong.pop("partition_epoch", row["zk_version"]),
            "recovery": wrong.pop("recovery", 0),
            "isr": isr,
        }
        asked = {"broker_id": 1, "broker_epoch": 101, "version": 3, "topic_id": None} | wrong
        return self.happen(
            "alter_partition_requested",
            "t",
            request_id="r",
            topic="t",
            partitions=[partition],
            **asked,
        )

    def move(
        self, *targets: list[int] | None, topic: str = "t", **more: Any
    ) -> dict[DecisionKind, Any]:
        """Ask for other replicas of partitions 0, 1, ...; None: take the reassignment back."""
        numbers = list(range(len(targets)))
        body: Said = {"request_id": "r", "partitions": numbers, "targets": list(targets)}
        return self.happen("alter_reassignments_requested", topic, topic=topic, **body | more)

    def take_back(self, topic: str = "t", **more: Any) -> dict[DecisionKind, Any]:
        """Take a topic back whose write met other content or was rejected: it is read again."""
        return self.happen("topic_removed", topic, topic=topic, observed_again=True, **more)

    def shut_down(self, id_: int, epoch: int | None = None) -> dict[DecisionKind, Any]:
        """A broker asks to shut down."""
        return self.happen(
            "controlled_shutdown_requested",
            request_id="r",
            broker_id=id_,
            broker_epoch=100 + id_ if epoch is None else epoch,
            version=3,
        )

    @property
    def slot(self) -> Slot:
        """The slot, decoded."""
        machine = decode_machine(self.states[0])
        assert isinstance(machine, Slot)
        return machine

    @property
    def cluster(self) -> Cluster:
        """The cluster machine, decoded."""
        machine = decode_machine(self.states[CLUSTER_KEY])
        assert isinstance(machine, Cluster)
        return machine

    def row(self, topic: str, partition: int) -> Said:
        """Return a partition's row as a dict of numbers and lists."""
        slot = self.slot
        at = int(slot.table.rows_of(topic)[partition])
        rows = slot.table.rows
        numbers = ("leader", "leader_epoch", "zk_version", "controller_epoch", "recovery", "state")
        row: Said = {name: int(getattr(rows, name)[at]) for name in numbers}
        lists = {name: getattr(rows, name)[at].tolist() for name in ("isr", "replicas")}
        return row | {name: [id_ for id_ in ids if id_ >= 0] for name, ids in lists.items()}


def actions(row: Said) -> Action:
    """Return a change's actions."""
    return Action(row["actions"])


def answer(
    controller: Controller, id_: int, error: int = 0, epoch: int | None = None
) -> dict[DecisionKind, Any]:
    """A broker has deleted its replica of partition 0 of topic t, or says why not."""
    return controller.happen(
        "stop_replica_answered",
        "t",
        broker_id=id_,
        broker_epoch=100 + id_ if epoch is None else epoch,
        topic="t",
        partitions=[0],
        errors=[error],
    )
