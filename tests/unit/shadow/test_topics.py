"""Reassignments and deletions beside a live controller, which alone hears what is asked of it."""

from __future__ import annotations

import pytest

from state.event_kinds import EventKind
from state.partitions.reassignment import Motion
from streaming.log.events import event
from streaming.shadow.looks import Look, SeenTopic
from streaming.shadow.verdicts import Difference, Status
from tests.unit.shadow.support import GRACE_MS, WINDOW_MS, Beside, broker, seen, state

TO_4 = Motion((2, 4, 1, 3), frozenset({4}), frozenset({1, 3}))


@pytest.fixture
def beside() -> Beside:
    """Partition t-0 is on 1, 2, 3, led by 1 at epoch 4 and version 9; broker 4 is idle."""
    return Beside(brokers=(1, 2, 3, 4))


def test_a_reassignment_by_request(beside: Beside) -> None:
    beside.look(topics={"t": seen(TO_4)}, live=state(1, [1, 2, 3], 5, 10))
    assert beside.statuses() == [
        (Status.AGREED, "rewrite_assignment"),
        (Status.AGREED, "leader_epoch_bumped"),
    ]
    beside.look(live=state(1, [1, 2, 3, 4], 5, 11))
    beside.look(live=state(2, [1, 2, 3, 4], 6, 12))
    beside.look(topics={"t": seen(Motion((2, 4)))}, live=state(2, [2, 4], 8, 14))
    said = beside.statuses()
    assert (Status.AGREED, "complete_reassignment") in said
    assert (Status.EXPLAINED, "reassigned_partition_elected") in said
    assert {status for status, _ in said} <= {Status.AGREED, Status.EXPLAINED, Status.PASSED_OVER}
    beside.wait()
    assert beside.statuses() == []
    assert beside.ours() == state(2, [2, 4], 8, 14)


def test_a_reassignment_whose_steps_nobody_saw(beside: Beside) -> None:
    beside.look(topics={"t": seen(Motion((2, 4)))}, live=state(2, [2, 4], 8, 14))
    beside.wait(GRACE_MS)
    said = beside.statuses()
    assert (Status.AGREED, "complete_reassignment") in said
    assert {status for status, _ in said} <= {Status.AGREED, Status.EXPLAINED, Status.PASSED_OVER}
    assert beside.ours() == state(2, [2, 4], 8, 14)


def test_a_reassignment_through_zookeeper_is_not_asked_twice(beside: Beside) -> None:
    body = {"topic": "t", "partitions": [0], "targets": [[2, 4]]}
    asked = event(EventKind.ALTER_REASSIGNMENTS_REQUESTED, body, "t")
    beside.look(asked, topics={"t": seen(Motion((1, 2, 3)))})
    assert beside.kinds() == [EventKind.ALTER_REASSIGNMENTS_REQUESTED]
    beside.look(topics={"t": seen(TO_4)}, live=state(1, [1, 2, 3], 5, 10))
    assert beside.statuses() == [
        (Status.AGREED, "rewrite_assignment"),
        (Status.AGREED, "leader_epoch_bumped"),
    ]
    assert beside.kinds() == [EventKind.ALTER_REASSIGNMENTS_REQUESTED]


def test_steps_of_a_move_that_ours_has_ended_ask_for_nothing(beside: Beside) -> None:
    """All that stay are in sync: our machine begins and ends the move in one event."""
    body = {"topic": "t", "partitions": [0], "targets": [[1, 2]]}
    beside.look(event(EventKind.ALTER_REASSIGNMENTS_REQUESTED, body, "t"))
    on_its_way = Motion((1, 2, 3), frozenset(), frozenset({3}))
    beside.look(topics={"t": seen(on_its_way)}, live=state(1, [1, 2, 3], 5, 10))
    assert beside.kinds() == [EventKind.ALTER_REASSIGNMENTS_REQUESTED]
    beside.look(topics={"t": seen(Motion((1, 2)))}, live=state(1, [1, 2], 6, 11))
    beside.wait()
    assert {status for status, _ in beside.statuses()} <= {Status.AGREED, Status.EXPLAINED}
    assert beside.ours() == state(1, [1, 2], 6, 11)


def test_a_reassignment_that_is_not_begun_is_missed(beside: Beside) -> None:
    body = {"topic": "t", "partitions": [0], "targets": [[2, 4]]}
    beside.look(event(EventKind.ALTER_REASSIGNMENTS_REQUESTED, body, "t"))
    beside.wait()
    assert (Status.MISSED, "rewrite_assignment") in beside.statuses()


def test_a_move_that_the_live_controller_does_not_end_is_missed_once(beside: Beside) -> None:
    """Each time our machine is told how it is, it ends the move again."""
    beside.look(topics={"t": seen(TO_4)}, live=state(1, [1, 2, 3], 5, 10))
    beside.look(live=state(1, [1, 2, 3, 4], 5, 11))
    beside.statuses()
    _check_missed_once(beside)
    beside.look(topics={"t": seen(Motion((2, 4)))}, live=state(2, [2, 4], 8, 14))
    beside.wait()
    assert {status for status, _ in beside.statuses()} <= {Status.AGREED, Status.EXPLAINED}
    assert beside.ours() == state(2, [2, 4], 8, 14)


def _check_missed_once(beside: Beside) -> None:
    """The topic's end of its move, and the partition's."""
    for _ in range(4):
        beside.wait()
    assert sorted(beside.statuses()) == [
        (Status.MISSED, "complete_reassignment"),
        (Status.MISSED, "reassigned_partition_elected"),
    ]
    asked = len(beside.kinds())
    beside.wait()
    assert (beside.statuses(), beside.shadow.comparison.unsettled) == ([], 0)
    assert len(beside.kinds()) == asked


@pytest.fixture
def moved() -> Beside:
    """All replicas of the move are in sync as the shadow begins to watch."""
    return Beside(state(1, [1, 2, 3, 4], 5, 11), (1, 2, 3, 4), moving=TO_4)


def test_a_move_that_ends_after_the_first_look_agrees(moved: Beside) -> None:
    moved.look(topics={"t": seen(Motion((2, 4)))}, live=state(2, [2, 4], 8, 14))
    moved.wait()
    said = moved.statuses()
    assert (Status.AGREED, "complete_reassignment") in said
    assert {status for status, _ in said} <= {Status.AGREED, Status.EXPLAINED}


def test_a_move_that_nobody_ends_since_before_the_first_look_is_missed_once(
    moved: Beside,
) -> None:
    _check_missed_once(moved)


def test_a_reassignment_is_taken_back(beside: Beside) -> None:
    beside.look(topics={"t": seen(TO_4)}, live=state(1, [1, 2, 3], 5, 10))
    beside.look(topics={"t": seen(Motion((2, 1, 3)))}, live=state(1, [1, 2, 3], 6, 11))
    beside.wait()
    assert {status for status, _ in beside.statuses()} <= {Status.AGREED, Status.EXPLAINED}
    assert beside.ours().leader == 1


def test_a_deletion_counts_when_the_topic_is_gone(beside: Beside) -> None:
    beside.look(event(EventKind.TOPIC_DELETION_REQUESTED, {"topic": "t"}, "t"))
    beside.look(live=state(1, [1, 2, 3], 5, 10))
    beside.wait(60_000)
    assert beside.statuses() == [], "brokers take their time, and the end counts"
    beside.look(topics={"t": None})
    assert beside.statuses() == [(Status.AGREED, "delete_topic")]
    assert beside.shadow.comparison.partitions == 0


def test_a_deletion_counts_though_a_broker_was_away_in_it(beside: Beside) -> None:
    """Our machine cannot delete what is there, and asks again when the others have answered."""
    beside.look(event(EventKind.TOPIC_DELETION_REQUESTED, {"topic": "t"}, "t"))
    beside.look(beside.brokers(unregistered=[1]))
    beside.look(beside.brokers(registered=[broker(1, 300)]))
    beside.statuses()
    beside.look(topics={"t": None})
    assert (Status.AGREED, "delete_topic") in beside.statuses()
    assert beside.shadow.comparison.partitions == 0


@pytest.fixture
def empty(beside: Beside) -> Beside:
    """Topic `empty` has no partition, so that our machine deletes it as soon as it is marked."""
    beside.look(beside.topic([], [], "empty"), topics={"empty": SeenTopic(None, {})})
    beside.look(event(EventKind.TOPIC_DELETION_REQUESTED, {"topic": "empty"}, "empty"))
    beside.wait(WINDOW_MS - 1)
    assert (beside.statuses(), beside.shadow.comparison.unsettled) == ([], 1)
    return beside


def test_a_deletion_without_replicas_waits_for_its_match(empty: Beside) -> None:
    empty.look(topics={"empty": None})
    assert empty.statuses() == [(Status.AGREED, "delete_topic")]
    assert (empty.shadow.comparison.topics, empty.shadow.comparison.unsettled) == (1, 0)


def test_a_deletion_without_replicas_is_missed_and_the_topic_stays(empty: Beside) -> None:
    empty.wait()
    assert empty.statuses() == [(Status.MISSED, "delete_topic")]
    empty.wait()
    assert (empty.shadow.comparison.topics, empty.shadow.comparison.unsettled) == (2, 0)
    empty.look(topics={"empty": None})
    assert empty.statuses() == [(Status.AGREED, "delete_topic")]
    assert empty.shadow.set_aside == 0


def test_a_deletion_whose_controller_goes_is_passed_over(empty: Beside) -> None:
    empty.load(state(1, [1, 2, 3], 4, 9), brokers=(1, 2, 3), epoch=6, first=False)
    assert empty.statuses() == [(Status.PASSED_OVER, "delete_topic")]


def test_a_topic_that_was_deleted_by_both_comes_again(empty: Beside) -> None:
    again = empty.topic([[1, 2]], [None], "empty")
    gone = Look(empty.now_ms, topics={"empty": None})
    empty.shadow.comparison.saw(gone)
    empty.look(again, topics={"empty": seen(Motion((1, 2)))})
    assert empty.statuses() == [(Status.AGREED, "delete_topic")]
    assert EventKind.TOPIC_REMOVED not in empty.kinds()


def test_a_deletion_that_nobody_saw_begin(beside: Beside) -> None:
    beside.look(topics={"t": None})
    assert beside.statuses() == [(Status.AGREED, "delete_topic")]
    assert EventKind.TOPIC_DELETION_REQUESTED in beside.kinds()


def test_a_deletion_goes_on_whose_mark_somebody_takes_away(beside: Beside) -> None:
    beside.look(topics={"t": seen(TO_4)}, live=state(1, [1, 2, 3], 5, 10))
    beside.look(event(EventKind.TOPIC_DELETION_REQUESTED, {"topic": "t"}, "t"))
    body = {"topic": "t", "topic_id": None}
    beside.look(event(EventKind.TOPIC_DELETION_WITHDRAWN, body, "t"))
    assert EventKind.TOPIC_DELETION_WITHDRAWN not in beside.kinds()


def test_a_deletion_waits_for_a_dead_broker(beside: Beside) -> None:
    beside.look(beside.brokers(unregistered=[3]), live=state(1, [1, 2], 5, 10))
    beside.statuses()
    beside.look(event(EventKind.TOPIC_DELETION_REQUESTED, {"topic": "t"}, "t"))
    beside.look(beside.brokers(registered=[broker(3, 203)]), topics={"t": None})
    assert beside.statuses() == [(Status.AGREED, "delete_topic")]


def test_a_topic_that_is_gone_while_a_replica_is_not(beside: Beside) -> None:
    beside.look(beside.brokers(unregistered=[3]), live=state(1, [1, 2], 5, 10))
    beside.statuses()
    beside.look(topics={"t": None})
    beside.wait()
    assert beside.statuses() == [(Status.EXTRA, "delete_topic")]
    assert beside.shadow.comparison.partitions == 0


def test_a_topic_that_is_deleted_while_it_moves_is_explained(beside: Beside) -> None:
    beside.look(topics={"t": seen(TO_4)}, live=state(1, [1, 2, 3], 5, 10))
    beside.statuses()
    beside.look(topics={"t": None})
    beside.wait()
    [verdict] = beside.notes.verdicts
    assert (verdict.status, verdict.why) == (
        Status.EXPLAINED,
        Difference.DELETION_DURING_REASSIGNMENT,
    )


def test_a_topic_is_created_again(beside: Beside) -> None:
    beside.look(topics={"t": None})
    beside.look(beside.topic([[3, 1]], [None]), topics={"t": seen(Motion((3, 1)))})
    beside.look(live=state(3, [3, 1]))
    assert beside.statuses() == [
        (Status.AGREED, "delete_topic"),
        (Status.AGREED, "new_partition_elected"),
    ]


def test_another_assignment_is_taken_over(beside: Beside) -> None:
    """One that we would refuse: broker 9 is not there."""
    beside.look(topics={"t": seen(Motion((9, 1, 2, 3), frozenset({9}), frozenset({1, 2, 3})))})
    beside.wait()
    [verdict] = beside.notes.verdicts
    assert verdict.status is Status.EXTRA
    assert "alter_reassignments" in verdict.why
    beside.notes.verdicts.clear()
    beside.look(live=state(1, [1, 2, 3], 5, 10))
    beside.wait()
    beside.look(beside.brokers(unregistered=[1]), live=state(2, [2, 3], 6, 11))
    assert beside.statuses()[-1] == (Status.AGREED, "offline_partition_elected")


def test_a_topic_comes_again_while_we_hold_on_to_the_earlier_one(beside: Beside) -> None:
    """We wait for a dead broker's replica; the live controller has not."""
    beside.look(beside.brokers(unregistered=[3]), live=state(1, [1, 2], 5, 10))
    beside.statuses()
    beside.look(topics={"t": None})
    beside.look(beside.topic([[2, 1]], [None]), topics={"t": seen(Motion((2, 1)))})
    beside.look(live=state(2, [2, 1]))
    beside.wait()
    assert beside.statuses() == [
        (Status.EXTRA, "delete_topic"),
        (Status.AGREED, "new_partition_elected"),
    ]
    assert beside.ours() == state(2, [2, 1])


def test_a_mark_where_deletion_is_not_allowed_means_nothing() -> None:
    beside = Beside(**{"delete.topic.enable": False})
    beside.look(event(EventKind.TOPIC_DELETION_REQUESTED, {"topic": "t"}, "t"))
    beside.look(beside.brokers(unregistered=[1]), live=state(2, [2, 3], 5, 10))
    assert beside.statuses() == [(Status.AGREED, "offline_partition_elected")]


def test_a_topic_that_is_gone_where_deletion_is_not_allowed() -> None:
    beside = Beside(**{"delete.topic.enable": False})
    beside.look(topics={"t": None})
    beside.wait(WINDOW_MS - 1)
    assert beside.kinds() == [EventKind.TOPIC_DELETION_REQUESTED]
    beside.wait()
    assert beside.statuses() == [(Status.EXTRA, "delete_topic")]
    assert beside.kinds() == [EventKind.TOPIC_DELETION_REQUESTED, EventKind.TOPIC_REMOVED]
    assert beside.shadow.comparison.unsettled == 0


def test_a_reassignment_to_the_replicas_that_it_has(beside: Beside) -> None:
    """It leaves no trace but a raised epoch."""
    beside.look(live=state(1, [1, 2, 3], 5, 10))
    assert beside.statuses() == [
        (Status.AGREED, "complete_reassignment"),
        (Status.AGREED, "leader_epoch_bumped"),
    ]
    assert beside.ours() == state(1, [1, 2, 3], 5, 10)
