"""Partitions beside a live controller: what agrees, what differs, and that nobody drifts."""

from __future__ import annotations

import pytest

from state.event_kinds import EventKind
from streaming.log.events import event
from streaming.shadow.verdicts import Difference, Status
from tests.unit.shadow.support import GRACE_MS, Beside, broker, state

OFFLINE = "offline_partition_elected"
ALTERED = "isr_altered_by_leader"


@pytest.fixture
def beside() -> Beside:
    """Partition t-0 is led by 1 at epoch 4 and version 9, all in sync."""
    return Beside()


def test_a_first_load_decides_nothing_that_counts() -> None:
    """The live controller did not start when we did."""
    beside = Beside(state(3, [3, 1, 2], 4, 9), brokers=(1, 2))
    assert beside.statuses() == []
    assert beside.ours() == state(3, [3, 1, 2], 4, 9)


def test_the_same_election_agrees(beside: Beside) -> None:
    beside.look(beside.brokers(unregistered=[1]))
    assert beside.statuses() == []
    beside.look(live=state(2, [2, 3], 5, 10))
    assert beside.statuses() == [(Status.AGREED, OFFLINE)]
    beside.wait()
    assert beside.statuses() == []


def test_input_and_result_in_one_look(beside: Beside) -> None:
    beside.look(beside.brokers(unregistered=[1]), live=state(2, [2, 3], 5, 10))
    assert beside.statuses() == [(Status.AGREED, OFFLINE)]


def test_another_leader_differs(beside: Beside) -> None:
    beside.look(beside.brokers(unregistered=[1]), live=state(3, [3, 2], 5, 10))
    assert beside.statuses() == [], "it may still become what we expect"
    beside.wait()
    [verdict] = beside.notes.verdicts
    assert (verdict.status, verdict.kind) == (Status.DIFFERED, OFFLINE)
    assert (verdict.decided["leader"], verdict.live["leader"]) == (2, 3)
    assert beside.engine.events[verdict.offset].kind == EventKind.BROKER_REGISTRATIONS_CHANGED


def test_a_dead_broker_left_in_the_isr_differs(beside: Beside) -> None:
    """The version leaves no room for a change by the leader."""
    beside.look(beside.brokers(unregistered=[1]), live=state(2, [1, 2, 3], 5, 10))
    beside.wait()
    assert beside.statuses() == [(Status.DIFFERED, OFFLINE)]


def test_what_is_not_done_is_missed(beside: Beside) -> None:
    beside.look(beside.brokers(unregistered=[1]))
    beside.wait(999)
    assert beside.statuses() == []
    beside.wait(2)
    assert beside.statuses() == [(Status.MISSED, OFFLINE)]


def test_what_has_no_reason_is_extra(beside: Beside) -> None:
    beside.look(live=state(2, [2, 3, 1], 5, 10))
    beside.wait()
    assert beside.statuses() == [(Status.EXTRA, "nothing_decided")]


@pytest.mark.parametrize(
    "live", [state(3, [3, 2], 5, 10), state(1, [1, 2, 3], 4, 9)], ids=["differed", "missed"]
)
def test_after_a_divergence_we_go_on_from_the_live_state(beside: Beside, live: object) -> None:
    beside.look(beside.brokers(unregistered=[1]), live=live)
    beside.wait()
    assert len(beside.statuses()) == 1
    assert beside.ours() == live
    beside.look(beside.brokers(unregistered=[3]), live=state(2, [2], live.leader_epoch + 1, 20))
    assert [status for status, _ in beside.statuses()] in ([Status.AGREED], [Status.EXPLAINED])


def test_several_steps_to_the_same_end_are_explained(beside: Beside) -> None:
    beside.look(beside.brokers(bounced=[broker(1, 201)]))
    beside.look(live=state(-1, [2, 3], 5, 10))
    beside.look(live=state(2, [2, 3], 6, 11))
    [verdict] = beside.notes.verdicts
    assert (verdict.status, verdict.why) == (Status.EXPLAINED, Difference.SEVERAL_CHANGES)
    assert beside.ours() == state(2, [2, 3], 6, 11), "the live epochs count from here on"
    beside.notes.verdicts.clear()
    beside.look(beside.brokers(unregistered=[2]), live=state(3, [3], 7, 12))
    assert beside.statuses() == [(Status.AGREED, OFFLINE)]


def test_an_isr_change_of_the_leader(beside: Beside) -> None:
    beside.look(live=state(1, [1, 3], 4, 10))
    assert beside.statuses() == [(Status.AGREED, ALTERED)]
    beside.look(live=state(1, [1, 3, 2], 4, 11))
    assert beside.statuses() == [(Status.AGREED, ALTERED)]
    assert beside.ours() == state(1, [1, 3, 2], 4, 11)


def test_isr_changes_that_were_seen_as_one(beside: Beside) -> None:
    beside.look(live=state(1, [1, 3], 4, 13))
    assert beside.statuses() == [(Status.AGREED, ALTERED)]
    beside.look(live=state(1, [1, 3], 4, 15))
    assert beside.statuses() == []
    assert beside.ours() == state(1, [1, 3], 4, 15)


def test_an_isr_that_we_would_refuse_is_extra(beside: Beside) -> None:
    beside.look(live=state(1, [1, 2, 3, 7], 4, 10))
    [verdict] = beside.notes.verdicts
    assert (verdict.status, verdict.why) == (
        Status.EXTRA,
        "we answer alter_partition with error INVALID_REQUEST (42)",
    )
    assert beside.ours() == state(1, [1, 2, 3, 7], 4, 10)


@pytest.fixture
def beside_writing_leaders() -> Beside:
    """As `beside`, with a protocol below 2.7: leaders write their ISRs and ask nobody."""
    return Beside(leaders_ask=False)


def test_an_isr_that_a_leader_wrote_is_no_decision(beside_writing_leaders: Beside) -> None:
    beside = beside_writing_leaders
    beside.look(live=state(1, [1, 3], 4, 10))
    beside.wait()
    assert beside.statuses() == []
    assert beside.ours() == state(1, [1, 3], 4, 10)
    assert beside.kinds() == [EventKind.PARTITION_STATES_OBSERVED]


def test_a_leader_that_writes_takes_in_whom_we_would_refuse(beside_writing_leaders: Beside) -> None:
    """Broker 2 shuts down; its last fetch comes after it left the ISR."""
    beside = beside_writing_leaders
    beside.look(live=state(1, [1, 3], 5, 10))
    beside.look(live=state(1, [1, 3, 2], 5, 11))
    assert beside.statuses() == [(Status.AGREED, "replica_left_isr")]
    beside.look(beside.brokers(unregistered=[2]), live=state(1, [1, 3], 6, 12))
    beside.wait()
    assert beside.statuses() == [(Status.AGREED, "replica_left_isr")]
    assert beside.ours() == state(1, [1, 3], 6, 12)


def test_a_leader_that_writes_takes_in_who_fetches_on_after_its_session(
    beside_writing_leaders: Beside,
) -> None:
    """Kafka's controller leaves it there."""
    beside = beside_writing_leaders
    beside.look(beside.brokers(unregistered=[3]))
    beside.look(live=state(1, [1, 2, 3], 5, 11))
    assert beside.statuses() == [(Status.AGREED, "replica_left_isr")]
    beside.look(beside.brokers(registered=[broker(3, 301)]))
    beside.wait()
    assert beside.statuses() == []
    assert beside.ours() == state(1, [1, 2, 3], 5, 11)


def test_who_was_taken_in_before_its_death_leaves_with_the_next_term() -> None:
    beside = Beside(state(1, [1, 2], 4, 9), leaders_ask=False)
    beside.look(beside.brokers(unregistered=[3]), live=state(1, [1, 2, 3], 4, 10))
    assert beside.statuses() == []
    beside.look(live=state(1, [1, 2], 5, 11))
    assert beside.statuses() == [(Status.AGREED, "replica_left_isr")]
    beside.wait()
    assert beside.statuses() == []


def test_an_isr_that_a_leader_wrote_before_its_death_unseen(beside_writing_leaders: Beside) -> None:
    beside = beside_writing_leaders
    beside.look(beside.brokers(unregistered=[1]), live=state(3, [3], 5, 11))
    beside.wait(GRACE_MS)
    assert beside.statuses()[-1] == (Status.AGREED, OFFLINE)
    assert beside.ours() == state(3, [3], 5, 11)


def test_an_isr_that_a_leader_wrote_before_an_election_unseen() -> None:
    """Both were seen as one: the change is made up, and the election rests on it."""
    beside = Beside(state(2, [2, 1, 3], 4, 9), leaders_ask=False)
    beside.look(live=state(1, [2, 1], 5, 11))
    beside.wait(GRACE_MS)
    assert beside.statuses() == [(Status.AGREED, "preferred_replica_elected")]
    assert beside.ours() == state(1, [2, 1], 5, 11)


def test_an_isr_change_came_before_the_death(beside: Beside) -> None:
    """The leader took 2 out, then died: both were seen after its death was."""
    beside.look(beside.brokers(unregistered=[1]), live=state(1, [1, 3], 4, 10))
    assert beside.statuses() == [(Status.PASSED_OVER, OFFLINE)]
    beside.look(live=state(3, [3], 5, 11))
    assert beside.statuses() == [(Status.AGREED, OFFLINE)]


def test_an_isr_change_before_the_death_that_nobody_saw(beside: Beside) -> None:
    beside.look(beside.brokers(unregistered=[1]), live=state(3, [3], 5, 11))
    beside.wait(GRACE_MS)
    assert beside.statuses()[-1] == (Status.AGREED, OFFLINE)
    assert beside.ours() == state(3, [3], 5, 11)


def test_an_isr_change_after_the_election(beside: Beside) -> None:
    beside.look(beside.brokers(unregistered=[1]), live=state(2, [2], 5, 11))
    said = beside.statuses()
    assert said[-1] == (Status.AGREED, ALTERED)
    assert {status for status, _ in said} <= {Status.AGREED, Status.PASSED_OVER}


def test_a_controlled_shutdown(beside: Beside) -> None:
    """It is asked for all of the broker's partitions; the broker then goes."""
    beside.look(live=state(2, [2, 3], 5, 10))
    assert beside.statuses() == [(Status.AGREED, "controlled_shutdown_elected")]
    beside.look(beside.brokers(unregistered=[1]))
    beside.wait()
    assert beside.statuses() == []


@pytest.fixture
def two(beside: Beside) -> Beside:
    """Partition t-1 is where t-0 is, led by 1 too."""
    new = state(1, [1, 2, 3])
    beside.look(beside.topic([[1, 2, 3], [1, 2, 3]], [None, None]))
    beside.look(live=new, partition=1)
    beside.wait()
    assert (beside.ours(1), beside.shadow.comparison.unsettled) == (new, 0)
    beside.statuses()
    return beside


def test_a_controlled_shutdown_that_is_seen_in_steps(two: Beside) -> None:
    """It is asked for when the broker has left all ISRs."""
    two.look(live=state(2, [2, 3], 5, 10))
    assert EventKind.CONTROLLED_SHUTDOWN_REQUESTED not in two.kinds()
    two.look(live=state(2, [2, 3], 1, 1), partition=1)
    assert two.statuses() == [(Status.AGREED, "controlled_shutdown_elected")] * 2


def test_who_leaves_one_isr_for_no_known_reason_does_not_shut_down(two: Beside) -> None:
    two.look(live=state(1, [1, 2], 5, 10))
    two.wait()
    assert [status for status, _ in two.statuses()] == [Status.EXTRA]
    assert EventKind.CONTROLLED_SHUTDOWN_REQUESTED not in two.kinds()
    assert two.ours() == state(1, [1, 2], 5, 10)
    assert two.ours(1).isr == (1, 2, 3)


def test_a_shutdown_to_another_leader_differs(beside: Beside) -> None:
    beside.look(live=state(3, [3, 2], 5, 10))
    beside.wait()
    assert beside.statuses() == [(Status.DIFFERED, "controlled_shutdown_elected")]


def test_a_follower_that_shuts_down(beside: Beside) -> None:
    beside.look(live=state(1, [1, 2], 5, 10))
    assert beside.statuses() == [(Status.AGREED, "replica_left_isr")]


def test_a_failed_log_directory(beside: Beside) -> None:
    notified = event(EventKind.LOG_DIR_FAILURE_NOTIFIED, {"broker_ids": [1]})
    beside.look(notified, log_dirs=[1])
    beside.look(live=state(2, [2, 3], 5, 10))
    assert beside.statuses() == [(Status.AGREED, OFFLINE)]
    assert beside.kinds()[-1] == EventKind.LEADER_AND_ISR_ANSWERED


def test_a_preferred_election() -> None:
    beside = Beside(state(2, [2, 3, 1], 4, 9))
    beside.look(live=state(1, [2, 3, 1], 5, 10))
    assert beside.statuses() == [(Status.AGREED, "preferred_replica_elected")]


def test_who_left_the_isr_before_a_preferred_election_did_not_shut_down() -> None:
    """Both were seen as one; a shutdown would be expected to concern all of the broker."""
    beside = Beside(state(2, [2, 1, 3], 4, 9))
    beside.look(live=state(1, [2, 1], 5, 11))
    beside.wait(GRACE_MS)
    said = beside.statuses()
    assert said == [(Status.PASSED_OVER, ALTERED), (Status.AGREED, "preferred_replica_elected")]
    assert EventKind.CONTROLLED_SHUTDOWN_REQUESTED not in beside.kinds()


def test_an_unclean_election_by_request() -> None:
    beside = Beside(state(-1, [1], 4, 9), brokers=(2, 3))
    beside.look(live=state(2, [2], 5, 10))
    beside.wait()
    # What was written says recovered, ours that the leader is recovering.
    assert beside.statuses() == [(Status.DIFFERED, "unclean_elected")]


def test_another_controller_is_elected(beside: Beside) -> None:
    """Its decisions about what it found are ours too, although it was quicker than our reading."""
    beside.look(beside.brokers(unregistered=[3]))
    beside.load(
        state(1, [1, 2, 3], 4, 9),
        brokers=(2,),
        epoch=6,
        first=False,
        states={0: state(2, [2], 5, 10)},
    )
    assert beside.statuses() == [
        (Status.PASSED_OVER, "replica_left_isr"),
        (Status.AGREED, OFFLINE),
    ]


def test_a_new_partition(beside: Beside) -> None:
    beside.look(beside.topic([[1, 2, 3], [2, 3, 1]], [None, None]))
    beside.look(live=state(2, [2, 3, 1]), partition=1)
    assert beside.statuses() == [(Status.AGREED, "new_partition_elected")]
    beside.look(beside.topic([[1, 2, 3], [2, 3, 1], [3]], [None, None, None]))
    beside.wait()
    assert beside.statuses() == [(Status.MISSED, "new_partition_elected")]


def test_a_wrong_election_is_not_explained_away(beside: Beside) -> None:
    """Each change takes a version and each election a term: there is no room for a guess."""
    beside.look(live=state(1, [1, 2], 4, 10))
    beside.look(beside.brokers(unregistered=[1]), live=state(3, [3], 5, 11))
    beside.wait(GRACE_MS)
    beside.wait()
    assert beside.statuses() == [(Status.AGREED, ALTERED), (Status.DIFFERED, OFFLINE)]


def test_a_step_that_was_decided_too_is_seen_before_the_next(beside: Beside) -> None:
    beside.look(beside.brokers(unregistered=[1]))
    beside.look(beside.brokers(unregistered=[2]))
    beside.look(live=state(2, [2, 3], 5, 10))
    assert beside.statuses() == [(Status.AGREED, OFFLINE)]
    beside.look(live=state(3, [3], 6, 11))
    assert beside.statuses() == [(Status.AGREED, OFFLINE)]


def test_a_wrong_step_is_not_adopted_as_older_than_ours(beside: Beside) -> None:
    beside.look(beside.brokers(unregistered=[1]))
    beside.look(beside.brokers(unregistered=[2]))
    beside.look(live=state(3, [3, 2], 5, 10))
    beside.wait()
    assert beside.statuses() == [(Status.DIFFERED, OFFLINE)]
