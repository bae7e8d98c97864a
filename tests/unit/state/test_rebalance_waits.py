"""A broker that has replicas out of sync gets leaders back once it has none, or waited enough."""

from __future__ import annotations

from typing import Any

from state.decisions import DecisionKind
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, broker
from tests.unit.state.test_leader_rebalance import TIMER, due, report

CHANGE, ARM = DecisionKind.CHANGE_PARTITIONS, DecisionKind.ARM_TIMER
REPORT = DecisionKind.REPORT_IMBALANCE
A_WHILE_MS = 100_000


def returned(sync_wait_ms: int = A_WHILE_MS, **config: Any) -> Controller:
    """Broker 1 is back, in sync in "warm", which it is to lead, and not in "cold" yet."""
    controller = Controller(leader_rebalance_sync_wait_ms=sync_wait_ms, **config)
    controller.topic("warm", [[1, 2]] * 2)
    controller.topic("cold", [[2, 1]])
    controller.brokers(unregistered=[1])
    controller.brokers(registered=[broker(1, 201)])
    observe(controller, "warm", 0, [2, 1])
    observe(controller, "warm", 1, [2, 1])
    return controller


def observe(controller: Controller, topic: str, partition: int, isr: list[int]) -> None:
    body = {"topic": topic, "cause": "notification", "partitions": [partition]}
    state = stored(2, isr, leader_epoch=1, zk_version=2)
    controller.happen("partition_states_observed", topic, **body, states=[state])


def warm_leaders(controller: Controller) -> list[int]:
    return [controller.row("warm", partition)["leader"] for partition in (0, 1)]


def test_slots_report_replicas_that_are_not_in_sync() -> None:
    controller = returned()
    assert due(controller)[REPORT] == [
        {"broker": 1, "preferred": 2, "imbalanced": 2, "behind": 1},
        {"broker": 2, "preferred": 1, "imbalanced": 0, "behind": 0},
    ]
    controller.brokers(unregistered=[1])
    assert [row["behind"] for row in due(controller)[REPORT]] == [0, 0], "it cannot get in sync"


def test_a_broker_that_leads_nothing_first_is_reported_too() -> None:
    controller = Controller(leader_rebalance_sync_wait_ms=1)
    controller.topic("t", [[2, 1]], [stored(2, [2])])
    assert [(row["broker"], row["behind"]) for row in due(controller)[REPORT]] == [(1, 1), (2, 0)]


def test_replicas_of_a_partition_without_a_leader_have_nobody_to_follow() -> None:
    controller = Controller(leader_rebalance_sync_wait_ms=1)
    controller.topic("t", [[2, 1]], [stored(-1, [9])])
    assert [row["behind"] for row in due(controller)[REPORT]] == [0]


def test_what_a_reassignment_adds_is_not_awaited() -> None:
    controller = Controller(leader_rebalance_sync_wait_ms=1)
    controller.topic("t", [[2, 1]], [stored(2, [2])], adding=[[1]])
    assert [row["behind"] for row in due(controller)[REPORT]] == [0]


def test_without_the_wait_nothing_is_reported_and_leaders_go_back() -> None:
    controller = returned(0)
    assert "behind" not in due(controller)[REPORT][0]
    report(controller)
    assert warm_leaders(controller) == [1, 1]


def test_leaders_go_back_when_all_replicas_are_in_sync() -> None:
    controller = returned()
    said = report(controller)
    assert CHANGE not in said
    assert warm_leaders(controller) == [2, 2]
    now_ms = 1_000 + controller.offset - 1
    assert said[ARM] == TIMER | {"deadline_ms": now_ms + 10_000}, "it is looked again soon"
    observe(controller, "cold", 0, [2, 1])
    assert ARM not in report(controller)
    assert warm_leaders(controller) == [1, 1]


def test_what_was_begun_with_goes_on_below_the_threshold() -> None:
    controller = returned()
    report(controller)
    assert controller.slot.authority.rebalancing == (1,)
    observe(controller, "cold", 0, [2, 1])
    report(controller, preferred={"1": 500, "2": 1})
    assert warm_leaders(controller) == [1, 1]


def test_no_broker_waits_for_longer_than_it_may() -> None:
    controller = returned(3)
    for leaders in ([2, 2], [2, 2], [1, 1]):  # a report is two events, a millisecond each
        report(controller)
        assert warm_leaders(controller) == leaders
    observe(controller, "warm", 0, [2, 1])
    report(controller)
    assert warm_leaders(controller) == [1, 1], "its wait is over until all of it is in sync"


def test_the_wait_begins_anew_with_the_next_time_and_the_next_controller() -> None:
    controller = returned()
    report(controller)
    (since,) = controller.slot.authority.behind_since
    assert since == (1, 1_000 + controller.offset - 1)
    assert controller.slot.authority.behind_since == controller.cluster.authority.behind_since
    observe(controller, "cold", 0, [2, 1])
    report(controller)
    assert controller.slot.authority.behind_since == ()
    controller.elect(6)
    assert controller.cluster.authority.behind_since == ()


def test_others_are_balanced_meanwhile() -> None:
    controller = returned()
    controller.topic("other", [[3, 2]], [stored(2, [2, 3])])
    report(controller)
    assert controller.row("other", 0)["leader"] == 3
    assert warm_leaders(controller) == [2, 2]


def test_a_step_that_is_full_is_gone_on_with_as_without_a_wait() -> None:
    controller = returned(leader_rebalance_partitions_max=1, leader_rebalance_step_interval_ms=70)
    controller.topic("other", [[3, 2]] * 2, [stored(2, [2, 3])] * 2)
    said = report(controller)
    assert said[ARM] == TIMER | {"deadline_ms": 1_000 + controller.offset - 1 + 70}
    assert controller.slot.authority.rebalancing == (1, 3)


def test_a_timer_that_is_due_before_is_not_armed_again() -> None:
    controller = returned(**{"leader_imbalance_check_interval_ms": 500})
    said = report(controller)
    assert ARM not in said


def test_leaders_leave_a_deprioritized_broker_though_it_is_behind() -> None:
    controller = Controller(leader_rebalance_sync_wait_ms=A_WHILE_MS, leader_deprioritized_list="1")
    controller.topic("warm", [[1, 2]] * 2, [stored(1, [1, 2])] * 2)
    controller.topic("cold", [[2, 1]], [stored(2, [2])])
    report(controller)
    assert warm_leaders(controller) == [2, 2]


def test_an_administrator_need_not_wait() -> None:
    controller = returned()
    body = {"request_id": "r", "topic": "warm", "election_type": "preferred"}
    controller.happen("elect_leaders_requested", "warm", **body, partitions=[0, 1])
    assert warm_leaders(controller) == [1, 1]
