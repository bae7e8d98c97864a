"""The preferred-leader balance: reported by slots, added up, decided on the sum."""

from __future__ import annotations

from typing import Any

from state.decisions import DecisionKind, Rule
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, broker

CHANGE, ARM = DecisionKind.CHANGE_PARTITIONS, DecisionKind.ARM_TIMER
REPORT, PROPOSE = DecisionKind.REPORT_IMBALANCE, DecisionKind.PROPOSE_ELECTIONS
TIMER = {"timer": "leader_rebalance"}


def due(controller: Controller, **wrong: int) -> Any:
    deadline_ms = controller.cluster.timers["leader_rebalance"]
    return controller.happen("timer_due", **TIMER, **({"deadline_ms": deadline_ms} | wrong))


def led_by_others(partitions: int, **config: Any) -> Controller:
    """Partitions that prefer 1 and are led by 2, and one led by 3 as it should be."""
    controller = Controller(**config)
    controller.topic("t", [[1, 2]] * partitions + [[3, 1]])
    controller.brokers(unregistered=[1])
    controller.brokers(registered=[broker(1, 201)])
    for partition in range(partitions):
        body = {"topic": "t", "cause": "notification", "partitions": [partition]}
        state = stored(2, [2, 1], leader_epoch=1, zk_version=2)
        controller.happen("partition_states_observed", "t", **body, states=[state])
    return controller


def test_the_timer_is_armed_when_the_load_is_complete_and_again_when_it_was_due() -> None:
    controller = Controller()
    first = controller.cluster.timers["leader_rebalance"]
    said = due(controller)
    assert said[ARM] == TIMER | {"deadline_ms": first + 300_000}
    assert due(controller, deadline_ms=first) == {}


def test_slots_report_how_many_partitions_prefer_a_broker_and_are_led_by_another() -> None:
    assert due(led_by_others(4))[REPORT] == [
        {"broker": 1, "preferred": 4, "imbalanced": 4},
        {"broker": 3, "preferred": 1, "imbalanced": 0},
    ]


def test_partitions_that_never_had_a_leader_are_not_counted() -> None:
    controller = Controller()
    controller.topic("t", [[7]])
    assert due(controller)[REPORT] == [{"broker": 7, "preferred": 1, "imbalanced": 0}]


def report(controller: Controller, **counts: dict[str, int]) -> Any:
    """Take what the slots report now, or say that they had counted something else."""
    said = due(controller)
    found: dict[str, Any] = {
        name: {str(row["broker"]): row[name] for row in said[REPORT]}
        for name in ("preferred", "imbalanced", "behind")
        if name in said[REPORT][0]
    }
    found["proposals"] = [
        [*row["name"].rsplit("-", 1), row["broker"]] for row in said.get(PROPOSE, [])
    ]
    found["proposals"] = [[topic, int(number), id_] for topic, number, id_ in found["proposals"]]
    return controller.happen("leader_imbalance_reported", **found | counts)


def test_above_the_threshold_the_preferred_replicas_are_elected() -> None:
    first, second = report(led_by_others(2))[CHANGE]
    assert (first["leader"], second["leader"]) == (1, 1)
    assert first["rule"] == Rule.PREFERRED_REPLICA_ELECTED


def test_at_the_threshold_nothing_moves() -> None:
    assert report(led_by_others(2), preferred={"1": 20}, imbalanced={"1": 2}) == {}


def test_a_preferred_replica_outside_the_isr_is_not_proposed() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2]], [stored(2, [2])])
    said = due(controller)
    assert said[REPORT] == [{"broker": 1, "preferred": 1, "imbalanced": 1}]
    assert PROPOSE not in said


def test_what_was_proposed_and_can_no_longer_lead_is_left_alone() -> None:
    controller = led_by_others(2)
    found = {"preferred": {"1": 2}, "imbalanced": {"1": 2}}
    controller.brokers(unregistered=[1])
    proposals = [["t", 0, 1], ["t", 1, 1], ["gone", 0, 1]]
    assert controller.happen("leader_imbalance_reported", **found, proposals=proposals) == {}


def leaders(controller: Controller, partitions: int) -> list[int]:
    return [controller.row("t", partition)["leader"] for partition in range(partitions)]


def test_a_rebalance_goes_on_in_steps_until_all_partitions_of_the_broker_are_back() -> None:
    controller = led_by_others(
        5, leader_rebalance_partitions_max=2, leader_rebalance_step_interval_ms=70
    )
    said = report(controller)
    assert leaders(controller, 5) == [1, 1, 2, 2, 2]
    assert said[ARM] == TIMER | {"deadline_ms": 1_000 + controller.offset - 1 + 70}
    assert controller.slot.authority.rebalancing == (1,)
    report(controller, preferred={"1": 500, "3": 1})
    assert leaders(controller, 5) == [1, 1, 1, 1, 2], "below the threshold by now, and begun"
    said = report(controller)
    assert leaders(controller, 5) == [1] * 5
    assert ARM not in said
    assert controller.slot.authority.rebalancing == controller.cluster.authority.rebalancing == ()


def test_of_each_broker_one_more_is_proposed_than_one_step_moves() -> None:
    controller = led_by_others(5, leader_rebalance_partitions_max=2)
    assert [row["name"] for row in due(controller)[PROPOSE]] == ["t-0", "t-1", "t-2"]


def test_an_election_by_others_forgets_a_rebalance_under_way() -> None:
    controller = led_by_others(5, leader_rebalance_partitions_max=2)
    report(controller)
    controller.elect(6)
    assert controller.slot.authority.rebalancing == controller.cluster.authority.rebalancing == ()
