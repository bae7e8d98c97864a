"""Where a partition's log begins, what is safe, and where a follower's log parts from it."""

from __future__ import annotations

import pytest

from streaming.gateway.ports import DecisionTimedOut, Paused
from streaming.offsets.batches import BatchRecord, encode_batch, spans
from streaming.offsets.follower import UNKNOWN, EpochEnd
from streaming.offsets.partition_log import PartitionLog

BATCH = encode_batch([BatchRecord(1, b"k", b"v"), BatchRecord(2, b"l", b"w")])
NOW_S = 7.0
LEADER = 2
"""Whom ZooKeeper names."""


def showing(followers: dict[int, tuple[int, int]], epoch: int = 9) -> PartitionLog:
    """A log that has not begun; followers: (last epoch, position) by broker."""
    log = PartitionLog(0, epoch, raised=True)
    for broker, (last_epoch, position) in followers.items():
        follower = log.follower(broker)
        follower.last_epoch, follower.position = last_epoch, position
    return log


def begun(at: int = 10, epoch: int = 5) -> PartitionLog:
    log = showing({1: (4, at), 2: (4, at)}, epoch)
    assert log.begin_if_agreed([1, 2], LEADER, NOW_S)
    return log


def learn(log: PartitionLog, last_epoch: int, end: EpochEnd) -> None:
    assert log.lacks_end_of(last_epoch)
    assert log.base is not None
    log.learn_end_of(last_epoch, end, log.base)


def test_it_begins_where_the_brokers_in_sync_agree() -> None:
    log = PartitionLog(0, 5, raised=True)
    log.follower(1).position = 12
    assert not log.begin_if_agreed([1, 2], LEADER, NOW_S), "2 has not said yet"
    assert not log.begin_if_agreed([], LEADER, NOW_S), "nobody to ask"
    log.follower(2).position = 10
    log.follower(3).position = 3
    assert log.begin_if_agreed([1, 2], LEADER, NOW_S), "3 is not in sync"
    assert (log.start, log.end, log.high_watermark) == (10, 10, 10)
    assert log.follower(1).position == 10, "what it has beyond that is none of ours"
    assert log.follower(3).position == UNKNOWN, "nobody has compared it with ours"


def test_who_ends_with_an_older_epoch_must_show_a_part_of_the_newest_log() -> None:
    log = showing({1: (5, 110), 2: (7, 120)})
    assert not log.begin_if_agreed([1, 2], LEADER, NOW_S)
    assert log.witnesses([1, 2]) == [2]
    learn(log, 5, EpochEnd(5, 100))
    assert log.divergence(5, 110) == EpochEnd(5, 100)
    assert not log.begin_if_agreed([1, 2], LEADER, NOW_S), "1 must cut off what it has beyond 100"
    log.follower(1).position = 100
    assert log.begin_if_agreed([1, 2], LEADER, NOW_S)
    assert (log.end, log.base) == (100, EpochEnd(5, 100))
    assert log.divergence(7, 120) == EpochEnd(5, 100), "2 has what 1 has not"


def test_another_reference_says_other_ends() -> None:
    log = showing({1: (5, 110), 2: (7, 120)})
    assert not log.begin_if_agreed([1, 2], LEADER, NOW_S)
    base = log.base
    assert base is not None
    learn(log, 5, EpochEnd(5, 100))
    log.follower(3).position, log.follower(3).last_epoch = 130, 8
    assert not log.begin_if_agreed([1, 3], 3, NOW_S)
    assert log.lacks_end_of(5), "2's log does not count any more"
    log.learn_end_of(5, EpochEnd(5, 90), base)
    assert log.lacks_end_of(5), "an answer that comes too late"
    learn(log, 5, EpochEnd(5, 110))
    assert log.begin_if_agreed([1, 3], 3, NOW_S)
    assert log.end == 110


def test_logs_without_epochs_are_compared_by_their_ends_alone() -> None:
    log = showing({1: (UNKNOWN, 110), 2: (7, 120)})
    assert log.begin_if_agreed([1, 2], LEADER, NOW_S)
    assert (log.end, log.base) == (110, EpochEnd(7, 110))
    assert log.divergence(UNKNOWN, 110) is None
    assert log.divergence(UNKNOWN, 111) == EpochEnd(UNKNOWN, 110)
    empty = showing({1: (UNKNOWN, 0), 2: (UNKNOWN, 0)})
    assert empty.begin_if_agreed([1, 2], LEADER, NOW_S)
    assert empty.divergence(3, 5) == EpochEnd(3, 0), "of -1 a broker takes no notice"
    assert empty.divergence(3, 0) is None


def test_where_an_epoch_before_ours_ended_only_a_witness_knows() -> None:
    log = showing({2: (7, 120), 3: (7, 120)})
    assert log.begin_if_agreed([2, 3], LEADER, NOW_S)
    log.append(BATCH)
    learn(log, 5, EpochEnd(5, 100))
    assert log.divergence(5, 110) == EpochEnd(5, 100)
    assert log.divergence(5, 130) == EpochEnd(5, 100)
    assert log.divergence(5, 100) is None
    learn(log, 6, EpochEnd(5, 100))
    assert log.divergence(6, 90) == EpochEnd(5, 100)
    assert log.divergence(8, 110) == EpochEnd(7, 120), "of a leader that none of them followed"
    learn(log, 4, EpochEnd(4, 500))
    assert log.divergence(4, 130) == EpochEnd(4, 120), "a witness may have more than is ours"


def test_an_epoch_in_which_nothing_was_written_is_forgotten_once_nobody_knows_it() -> None:
    log = showing({2: (9, 120), 3: (9, 120)}, epoch=11)
    assert log.begin_if_agreed([2, 3], LEADER, NOW_S)
    base = log.base
    assert base is not None
    assert log.lacks_end_of(8)
    log.learn_end_of(8, None, base)
    assert log.base == EpochEnd(7, 120), "of 8 and later nothing stands there"
    assert log.divergence(8, 120) == EpochEnd(7, 120), "its log has something of 8, or not"
    assert log.divergence(7, 120) is None
    log.learn_end_of(8, None, base)
    assert log.base == EpochEnd(7, 120), "an answer about what was the base before"


def test_it_is_lost_when_no_broker_in_sync_has_what_it_goes_on_from() -> None:
    log = begun()
    assert not log.lost_by([1, 2], LEADER)
    log.diverged(1, 9)
    assert not log.lost_by([1, 2], LEADER), "2 may have it"
    assert log.lost_by([1], 1)
    log.diverged(2, UNKNOWN)
    assert log.lost_by([1, 2], LEADER)
    assert not log.lost_by([], UNKNOWN)


def test_it_is_lost_when_nobody_can_say_what_the_leader_has() -> None:
    log = begun()
    log.diverged(LEADER, UNKNOWN)
    assert not log.lost_by([1, 2], LEADER), "somebody may say it soon"
    log.follower(LEADER).committed = 7
    assert log.lost_by([1, 2], LEADER)
    assert not log.lost_by([1, 2], 1), "another one leaves the ISR"


def test_what_all_in_sync_have_is_safe() -> None:
    log = begun()
    assert log.append(BATCH) == 12
    log.follower(1).position = 12
    assert not log.advance([1, 2])
    log.follower(2).position = 12
    with log.asking_for([1, 2, 3], isr=[1, 2]):
        assert not log.advance([1, 2]), "who is asked into the ISR counts already"
    assert log.advance([1, 2])
    assert log.high_watermark == 12
    log.follower(2).position = 11
    assert not log.advance([1, 2])
    assert log.high_watermark == 12, "it never falls"


def test_what_is_not_safe_yet_is_measured() -> None:
    log = begun()
    measured = []
    for _ in range(3):
        log.append(BATCH)
        measured.append(log.unsafe_bytes)
    assert measured[0] > len(BATCH), "who waits for it is kept too"
    assert measured == [count * measured[0] for count in (1, 2, 3)]
    log.follower(1).position = 16
    for position, left in ((12, 2), (14, 1), (16, 0)):
        log.follower(2).position = position
        assert log.advance([1, 2])
        log.forget_before(log.high_watermark)
        assert log.unsafe_bytes == left * measured[0]


def test_who_is_asked_into_the_isr_counts_until_it_is_known_how_that_ended() -> None:
    log = begun()
    with pytest.raises(Paused), log.asking_for([1, 2, 3], isr=[1, 2]):
        raise Paused("nothing was decided")
    assert log.joining == frozenset()
    with pytest.raises(DecisionTimedOut), log.asking_for([1, 2, 3], isr=[1, 2]):
        raise DecisionTimedOut("it may yet be decided")
    assert log.joining == frozenset({3})
    with log.asking_for([1], isr=[1, 2]):
        assert log.joining == frozenset(), "what is asked for now counts"


def test_all_followers_have_caught_up_when_it_begins() -> None:
    log = showing({1: (4, 10), 2: (4, 8), 3: (4, 2)})
    assert log.begin_if_agreed([1, 2], LEADER, NOW_S)
    assert {one.caught_up_s for one in log.followers.values()} == {NOW_S}


def test_a_follower_that_fetches_has_shown_a_part_of_the_log() -> None:
    log = begun()
    log.append(BATCH)
    log.fetched(1, 12, 5, NOW_S + 1)
    log.fetched(2, 10, 4, NOW_S + 1)
    assert (log.follower(1).position, log.follower(1).last_epoch) == (12, 5)
    assert [log.follower(one).caught_up_s for one in (1, 2)] == [NOW_S + 1, NOW_S]
    log.diverged(1, 11)
    assert (log.follower(1).position, log.follower(1).shared_at_most) == (UNKNOWN, 11)
    log.drop_follower(1)
    assert log.follower(1).shared_at_most is None


def test_records_and_a_new_high_watermark_are_news() -> None:
    log = begun()
    assert [log.has_news_for(1, b""), log.has_news_for(1, b"")] == [True, False]
    assert log.has_news_for(1, BATCH)
    assert log.has_news_for(2, b""), "another one was not told yet"
    log.append(BATCH)
    for broker in (1, 2):
        log.fetched(broker, 12, 5, NOW_S)
    assert log.advance([1, 2])
    assert log.has_news_for(1, b"")


def test_batches_carry_offsets_and_the_epoch_of_their_time() -> None:
    log = begun()
    log.append(BATCH)
    log.change_epoch(7, NOW_S)
    log.append(BATCH)
    found = [(one.base_offset, one.leader_epoch) for one in spans(log.read(10, 10_000))]
    assert found == [(10, 5), (12, 7)]
    assert [one.base_offset for one in spans(log.read(12, 10_000))] == [12]
    assert [one.base_offset for one in spans(log.read(10, 1))] == [10], "at least one"
    assert log.read(14, 10_000) == b""


@pytest.mark.parametrize(
    ("last_epoch", "offset", "expected"),
    [
        pytest.param(4, 10, None, id="as far as all agree"),
        pytest.param(4, 8, None, id="behind"),
        pytest.param(4, 11, EpochEnd(4, 10), id="records that were never safe"),
        pytest.param(5, 12, None, id="ours, of the first epoch"),
        pytest.param(5, 13, EpochEnd(5, 12), id="more of the first epoch than there is"),
        pytest.param(7, 14, None, id="everything"),
        pytest.param(7, 15, EpochEnd(7, 14), id="more than everything"),
        pytest.param(6, 13, EpochEnd(5, 12), id="of a leader in between"),
    ],
)
def test_where_logs_part(last_epoch: int, offset: int, expected: EpochEnd | None) -> None:
    log = begun()
    log.append(BATCH)
    log.change_epoch(7, NOW_S)
    log.append(BATCH)
    assert log.divergence(last_epoch, offset) == expected


def test_batches_that_everybody_has_are_let_go() -> None:
    log = begun()
    for _ in range(3):
        log.append(BATCH)
    log.forget_before(13)
    assert log.start == 12, "the batch that holds 13 stays"
    log.forget_before(16)
    assert (log.start, log.memory_bytes) == (16, 0)
    log.append(BATCH)
    assert (log.start, log.end, log.memory_bytes) == (16, 18, len(BATCH))
