"""Following a log and showing it as JSON lines."""

from __future__ import annotations

import base64
import json
import threading

import numpy as np
import pytest

from state.blocks import encode_block
from streaming.cli import main
from streaming.commands import tap
from streaming.commands.tap import open_decision
from streaming.log.api import LogRecord, NewRecord, OffsetOutOfRange
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.log.tap import follow, to_json_line


def record(payload: bytes) -> LogRecord:
    return LogRecord(4, 1700, "topic_observed", "тема", payload)


def never() -> bool:
    return False


def test_a_json_payload_is_embedded_as_json():
    line = to_json_line(record(b'{"topic": "t", "replicas": [[1, 2]]}'))
    assert "\n" not in line
    assert json.loads(line) == {
        "offset": 4,
        "time_ms": 1700,
        "kind": "topic_observed",
        "key": "тема",
        "payload": {"topic": "t", "replicas": [[1, 2]]},
    }


@pytest.mark.parametrize("payload", [b"", b"\xff\x00", b"{", b'"\xff"', b"[1] 2"])
def test_a_payload_that_is_not_json_is_shown_as_base64_and_says_so(payload):
    line = json.loads(to_json_line(record(payload)))
    assert base64.b64decode(line["payload_base64"]) == payload
    assert line["payload_error"]
    assert "payload" not in line
    assert line["offset"] == 4


def test_another_opener_may_give_numpy_columns_or_fail():
    def columns(opened: LogRecord) -> object:
        return {"leader": np.frombuffer(opened.payload, "<i4")}

    line = json.loads(to_json_line(record(b"\1\0\0\0\2\0\0\0"), columns))
    assert line["payload"] == {"leader": [1, 2]}
    assert "buffer size" in json.loads(to_json_line(record(b"\1"), columns))["payload_error"]
    assert "payload_base64" in json.loads(to_json_line(record(b"\1"), lambda _: object()))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"HB\2" + bytes(9), "version 1"),
        (encode_block({"rule": np.array([99], "<i4")}, {}), "KeyError"),
    ],
    ids=["another version", "a field missing"],
)
def test_a_decision_of_another_format_is_shown_as_base64(payload, reason):
    block = LogRecord(4, 1700, "change_partitions", "9:0", payload)
    line = json.loads(to_json_line(block, open_decision))
    assert base64.b64decode(line["payload_base64"]) == payload
    assert reason in line["payload_error"]


@pytest.mark.parametrize(
    ("first", "shown"),
    [("start", [0, 1, 2, 5]), ("2", [2, 5]), ("3", [5]), ("end", [])],
)
def test_a_stream_is_gone_on_with_after_the_decision_before(
    folder, monkeypatch, capsys, first, shown
):
    """What a publisher was killed at is there twice: 1, 2, 3, 2, 3, 4."""
    ids = (1, 2, 3, 2, 3, 4)
    with EmbeddedLogWriter(folder) as writer:
        writer.append([NewRecord("reply", f"{event}:0", b"{}") for event in ids])
    monkeypatch.setattr(tap, "open_recorded", lambda where, name: EmbeddedLogReader(folder))
    with pytest.raises(SystemExit) as left:
        main(["tap", "kafka://nowhere:9092/decisions", "--no-follow", "--from", first])
    assert left.value.code == 0
    assert [json.loads(line)["offset"] for line in capsys.readouterr().out.splitlines()] == shown


def test_following_sees_old_and_new_records_and_goes_on_from_an_offset(
    folder, open_writer, records
):
    writer = open_writer()
    writer.append(records(3))
    with EmbeddedLogReader(folder) as reader:
        followed = follow(reader, 1, never, poll_ms=1)
        assert [next(followed).offset for _ in range(2)] == [1, 2]
        later = threading.Timer(0.05, writer.append, [records(2, start=3)])
        later.start()
        assert [next(followed).key for _ in range(2)] == ["topic-3", "topic-4"]
        later.join(30)
        resumed = follow(reader, 4, never, poll_ms=1)
        assert next(resumed).offset == 4


def test_following_ends_when_it_is_told_to(folder, open_writer, records):
    writer = open_writer()
    writer.append(records(3))
    seen: list[int] = []
    with EmbeddedLogReader(folder) as reader:
        followed = follow(reader, 0, lambda: len(seen) == 2, poll_ms=1)
        seen.extend(one.offset for one in followed)
        assert seen == [0, 1]
        assert list(follow(reader, 0, lambda: True, poll_ms=1)) == []


def test_following_from_outside_of_the_log_is_refused(folder, open_writer, records):
    writer = open_writer(segment_bytes=1)
    for one in records(3):
        writer.append([one])
    writer.truncate_before(2)
    with EmbeddedLogReader(folder) as reader:
        for offset in (0, 4):
            with pytest.raises(OffsetOutOfRange, match=f"offset {offset} is outside"):
                next(follow(reader, offset, never, poll_ms=1))
