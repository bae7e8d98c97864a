"""The preferred-leader balance: reported by slots, added up, decided on the sum."""

from __future__ import annotations

from typing import Any

from state.decisions import DecisionKind, Rule
from tests.unit.state.support import Controller, broker

CHANGE, ARM = DecisionKind.CHANGE_PARTITIONS, DecisionKind.ARM_TIMER
REPORT = DecisionKind.REPORT_IMBALANCE
TIMER = {"timer": "leader_rebalance"}


def due(controller: Controller, **wrong: int) -> Any:
    deadline_ms = controller.cluster.timers["leader_rebalance"]
    return controller.happen("timer_due", **TIMER, **({"deadline_ms": deadline_ms} | wrong))


def misled(partitions: int) -> Controller:
    """Partitions that prefer 1 and are led by 2, and one led by 3 as it should be."""
    controller = Controller()
    controller.topic("t", [[1, 2]] * partitions + [[3, 1]])
    controller.brokers(unregistered=[1])
    controller.brokers(registered=[broker(1, 201)])
    for partition in range(partitions):
        body = {"topic": "t", "cause": "notification", "partitions": [partition]}
        state = [2, 1, [2, 1], 5, 0, 2]
        controller.happen("partition_states_observed", "t", **body, states=[state])
    return controller


def test_the_timer_is_armed_when_the_load_is_complete_and_again_when_it_was_due() -> None:
    controller = Controller()
    first = controller.cluster.timers["leader_rebalance"]
    said = due(controller)
    assert said[ARM] == TIMER | {"deadline_ms": first + 300_000}
    assert due(controller, deadline_ms=first) == {}


def test_slots_report_how_many_partitions_prefer_a_broker_and_are_led_by_another() -> None:
    assert due(misled(4))[REPORT] == [
        {"broker": 1, "preferred": 4, "imbalanced": 4},
        {"broker": 3, "preferred": 1, "imbalanced": 0},
    ]


def test_partitions_that_never_had_a_leader_are_not_misled() -> None:
    controller = Controller()
    controller.topic("t", [[7]])
    assert due(controller)[REPORT] == [{"broker": 7, "preferred": 1, "imbalanced": 0}]


def test_above_the_threshold_the_preferred_replicas_are_elected() -> None:
    controller = misled(2)
    report = {"preferred": {"1": 2, "3": 1}, "imbalanced": {"1": 2}}
    first, second = controller.happen("leader_imbalance_reported", **report)[CHANGE]
    assert (first["leader"], second["leader"]) == (1, 1)
    assert first["rule"] == Rule.PREFERRED_REPLICA_ELECTED


def test_at_the_threshold_nothing_moves() -> None:
    report = {"preferred": {"1": 20}, "imbalanced": {"1": 2}}
    assert misled(2).happen("leader_imbalance_reported", **report) == {}


def test_a_preferred_replica_outside_the_isr_does_not_lead() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2]], [[2, 0, [2], 5, 0, 0]])
    report = {"preferred": {"1": 1}, "imbalanced": {"1": 1}}
    assert controller.happen("leader_imbalance_reported", **report) == {}
