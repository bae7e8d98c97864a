"""A log as JSON lines is the log: what is read back is what was written, byte for byte."""

from __future__ import annotations

import io

import pytest

from streaming.errors import ConfigurationError
from streaming.log.api import LogError, LogRecord, NewRecord, OffsetOutOfRange
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.log.json_lines import JsonLinesReader, write_json_lines
from streaming.log.recorded import NoRecordedLog, end_of, open_recorded

PAYLOADS = [
    b'{"topic":"t","partitions":[0,1]}',
    b'{"topic": "t"}',  # JSON, but not as orjson writes it
    b'{"a":1,"a":2}',
    b"\x00\xff not JSON",
    b"",
    '{"name":"\u00e4"}'.encode(),
    b"[1.0,1e400]",
]
RECORDS = [
    LogRecord(40 + at, 1_000 * at, "topic_observed", "t\u00e4", payload)
    for at, payload in enumerate(PAYLOADS)
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "log.jsonl"
    with path.open("w", encoding="utf-8") as out:
        assert write_json_lines(RECORDS, out) == len(RECORDS)
    return path


def test_every_record_is_read_back_byte_for_byte(file):
    reader = JsonLinesReader(file)
    assert (reader.start_offset(), reader.end_offset()) == (40, 47)
    assert list(reader.read(40, 47)) == RECORDS
    assert list(reader.read(42, 44)) == RECORDS[2:4]
    assert list(reader.read(47, 47)) == []


def test_json_is_shown_as_json_where_that_is_exact(file):
    lines = file.read_text("utf-8").splitlines()
    assert ['"payload":' in line for line in lines] == [
        True,
        False,
        False,
        False,
        False,
        True,
        False,
    ]


def test_a_range_that_is_not_there_is_refused(file):
    with pytest.raises(OffsetOutOfRange, match=r"offset 39 is outside"):
        JsonLinesReader(file).read(39, 41)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: not a record"),
        ("[]", "line 2: not a record"),
        ('{"offset":41,"time_ms":1,"kind":"k","key":""}', "line 2: field 'payload' is missing"),
        ('{"offset":42,"time_ms":1,"kind":"k","key":"","payload":{}}', "offset 42 follows 40"),
        ('{"offset":41,"time_ms":-1,"kind":"k","key":"","payload":{}}', "from 0 up"),
        ('{"offset":41,"time_ms":1,"kind":7,"key":"","payload":{}}', "must be strings"),
        ('{"offset":41,"time_ms":1,"kind":"k","key":"","payload_base64":"?"}', "not a record"),
    ],
)
def test_a_line_that_is_no_record_is_named(file, line, said):
    first = file.read_text("utf-8").splitlines()[0]
    file.write_text(f"{first}\n{line}\n", "utf-8")
    with pytest.raises(LogError, match=said):
        JsonLinesReader(file)


def test_a_log_is_opened_by_folder_data_folder_or_file(file, tmp_path):
    with EmbeddedLogWriter(tmp_path / "data" / "events", first_offset=40) as writer:
        writer.append([NewRecord(r.kind, r.key, r.payload, r.time_ms) for r in RECORDS])
    for path in (file, tmp_path / "data", tmp_path / "data" / "events"):
        reader = open_recorded(path)
        assert list(reader.read(40, 47)) == RECORDS
        reader.close()
    with pytest.raises(NoRecordedLog, match="no such log; allowed are"):
        open_recorded(tmp_path / "nothing")
    with pytest.raises(LogError, match="holds no log"):
        open_recorded(tmp_path)


def test_a_new_log_may_start_anywhere_and_stays_there(tmp_path):
    with EmbeddedLogWriter(tmp_path, first_offset=40) as writer:
        assert writer.append([NewRecord("k", "", b"")]) == range(40, 41)
    with EmbeddedLogWriter(tmp_path) as writer:
        assert writer.append([NewRecord("k", "", b"")]) == range(41, 42)
    with EmbeddedLogReader(tmp_path) as reader:
        assert (reader.start_offset(), reader.end_offset()) == (40, 42)


@pytest.mark.parametrize(
    ("until", "end"),
    [(None, 47), ("43", 43), ("1970-01-01T00:00:02Z", 42), ("1970-01-01T00:00:01.5", 42)],
)
def test_a_log_can_be_ended_by_offset_or_time(file, until, end):
    assert end_of(JsonLinesReader(file), until) == end


@pytest.mark.parametrize(
    ("until", "said"),
    [
        ("48", "--until 48: allowed are offsets from 40 to 47"),
        ("soon", "allowed are an offset, or"),
    ],
)
def test_an_end_that_is_none_is_refused(file, until, said):
    with pytest.raises(ConfigurationError, match=said):
        end_of(JsonLinesReader(file), until)


def test_what_is_written_twice_gives_the_same_file(file, tmp_path):
    again = io.StringIO()
    write_json_lines(JsonLinesReader(file).read(40, 47), again)
    assert again.getvalue() == file.read_text("utf-8")
