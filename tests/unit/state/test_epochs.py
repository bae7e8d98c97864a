"""Leader epochs raised by two for an announced leader."""

from __future__ import annotations

from typing import Any

from state.decisions import Action, DecisionKind, Rule
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, actions

TOPIC = "__consumer_offsets"


def raise_epochs(controller: Controller, topic: str = TOPIC) -> dict[DecisionKind, Any]:
    return controller.happen("raise_leader_epochs_requested", topic, request_id="r", topic=topic)


def test_led_partitions_get_two_epochs_more_and_every_replica_hears_of_it() -> None:
    controller = Controller()
    led = stored(2, [2, 1], leader_epoch=3, controller_epoch=4, zk_version=7)
    leaderless = stored(-1, [9], leader_epoch=5, controller_epoch=4, zk_version=7)
    controller.topic(TOPIC, [[1, 2], [9], [3]], [led, leaderless, None])
    before = {partition: controller.row(TOPIC, partition) for partition in range(3)}
    said = raise_epochs(controller)
    rows = {row["partition"]: row for row in said[DecisionKind.CHANGE_PARTITIONS]}
    for partition, row in rows.items():
        assert row["leader_epoch"] == before[partition]["leader_epoch"] + 2
        assert row["leader"] == before[partition]["leader"]
        assert row["isr"] == before[partition]["isr"]
        assert row["rule"] == Rule.LEADER_EPOCH_BUMPED
        assert actions(row) & Action.WRITE
        assert actions(row) & Action.LEADER_AND_ISR
        assert row["recipients"] == before[partition]["replicas"]
    assert 0 in rows
    assert 1 not in rows
    assert said[DecisionKind.REPLY]["error"] == ProtocolError.NONE


def test_a_topic_that_nobody_knows_is_an_error() -> None:
    said = raise_epochs(Controller())
    assert said[DecisionKind.REPLY]["error"] == ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
    assert DecisionKind.CHANGE_PARTITIONS not in said


def test_without_the_role_nothing_is_raised() -> None:
    controller = Controller()
    controller.topic(TOPIC, [[1]], [stored(1, [1], controller_epoch=4)])
    controller.happen("controller_resigned", reason="test")
    assert raise_epochs(controller)[DecisionKind.REPLY]["error"] == ProtocolError.NOT_CONTROLLER
