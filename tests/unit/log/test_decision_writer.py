"""A batch that is run again adds nothing; one that was cut short is completed."""

from __future__ import annotations

import pytest

from streaming.log.api import LogError, NewRecord
from streaming.log.decision_writer import IdempotentLogWriter, IdentifiedRecord, RecordId
from streaming.log.embedded import EmbeddedLogReader

BATCH = [
    IdentifiedRecord(RecordId(9, 0), "elect_leader", b"a", 500),
    IdentifiedRecord(RecordId(9, 1), "write_partition_state", b"b", 500),
    IdentifiedRecord(RecordId(10, 0), "elect_leader", b"c", 501),
    IdentifiedRecord(RecordId(100, 0), "reply", b"d", 502),
]


@pytest.fixture
def reopened(folder, open_writer):
    """Open the log and the idempotent writer over it, as a restarted job does."""

    def reopen():
        writer = open_writer()
        return IdempotentLogWriter(writer, EmbeddedLogReader(folder)), writer

    return reopen


@pytest.mark.parametrize("appended_before_the_crash", range(5))
def test_a_batch_run_again_after_any_cut_is_in_the_log_once(
    folder, reopened, appended_before_the_crash
):
    first, writer = reopened()
    first.append(BATCH[:appended_before_the_crash])
    writer.close()
    again, _ = reopened()
    assert again.append(BATCH) == (
        range(appended_before_the_crash, 4) if appended_before_the_crash < 4 else range(0)
    )
    assert again.append(BATCH) == range(0)
    assert again.last_id == RecordId(100, 0)
    with EmbeddedLogReader(folder) as reader:
        read = list(reader.read(0, reader.end_offset()))
    assert [(r.key, r.kind, r.payload, r.time_ms) for r in read] == [
        ("9:0", "elect_leader", b"a", 500),
        ("9:1", "write_partition_state", b"b", 500),
        ("10:0", "elect_leader", b"c", 501),
        ("100:0", "reply", b"d", 502),
    ]


def test_an_empty_log_has_no_last_id(reopened):
    writer, _ = reopened()
    assert writer.last_id is None
    assert writer.append([]) == range(0)


@pytest.mark.parametrize("batch", [BATCH[::-1], [BATCH[0], BATCH[0]]])
def test_ids_that_do_not_rise_are_refused(reopened, batch):
    writer, _ = reopened()
    with pytest.raises(ValueError, match="comes after id"):
        writer.append(batch)
    assert writer.last_id is None


@pytest.mark.parametrize("key", ["topic-1", "9", "9:", ":1", "9:-1"])
def test_a_log_whose_keys_are_no_ids_is_refused(folder, open_writer, key):
    writer = open_writer()
    writer.append([NewRecord("k", key, b"")])
    with pytest.raises(LogError, match="is not an id like"):
        IdempotentLogWriter(writer, EmbeddedLogReader(folder))
