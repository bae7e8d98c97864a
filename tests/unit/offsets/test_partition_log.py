"""Where a partition's log begins, what is safe, and where a follower's log parts from it."""

from __future__ import annotations

import pytest

from streaming.offsets.batches import BatchRecord, encode_batch, spans
from streaming.offsets.partition_log import Divergence, PartitionLog

BATCH = encode_batch([BatchRecord(1, b"k", b"v"), BatchRecord(2, b"l", b"w")])


def begun(at: int = 10, epoch: int = 5) -> PartitionLog:
    log = PartitionLog(0, epoch)
    for broker in (1, 2):
        log.follower(broker).position = at
    assert log.begin_if_agreed([1, 2])
    return log


def test_it_begins_where_the_brokers_in_sync_agree() -> None:
    log = PartitionLog(0, 5)
    log.follower(1).position = 12
    assert not log.begin_if_agreed([1, 2]), "2 has not said yet"
    assert not log.begin_if_agreed([]), "nobody to ask"
    log.follower(2).position = 10
    log.follower(3).position = 3
    assert log.begin_if_agreed([1, 2]), "3 is not in sync"
    assert (log.start, log.end, log.high_watermark) == (10, 10, 10)


def test_what_all_in_sync_have_is_safe() -> None:
    log = begun()
    assert log.append(BATCH) == 12
    log.follower(1).position = 12
    assert not log.advance([1, 2])
    log.joining = frozenset({3})
    log.follower(2).position = 12
    assert not log.advance([1, 2]), "who is asked into the ISR counts already"
    log.joining = frozenset()
    assert log.advance([1, 2])
    assert log.high_watermark == 12
    log.follower(2).position = 11
    assert not log.advance([1, 2])
    assert log.high_watermark == 12, "it never falls"


def test_batches_carry_offsets_and_the_epoch_of_their_time() -> None:
    log = begun()
    log.append(BATCH)
    log.change_epoch(7)
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
        pytest.param(4, 11, Divergence(4, 10), id="records that were never safe"),
        pytest.param(5, 12, None, id="ours, of the first epoch"),
        pytest.param(5, 13, Divergence(5, 12), id="more of the first epoch than there is"),
        pytest.param(7, 14, None, id="everything"),
        pytest.param(7, 15, Divergence(7, 14), id="more than everything"),
        pytest.param(6, 13, Divergence(5, 12), id="of a leader in between"),
    ],
)
def test_where_logs_part(last_epoch: int, offset: int, expected: Divergence | None) -> None:
    log = begun()
    log.append(BATCH)
    log.change_epoch(7)
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
