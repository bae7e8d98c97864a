"""A snapshot is written as it is read, behind what a folder was formatted with."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.metadata_log.reading import (
    METADATA_PARTITION,
    MetadataLog,
    UnreadableMetadataLog,
)
from streaming.metadata_log.records import Record, RecordType, encode_record
from streaming.metadata_log.writing import CannotWriteSnapshot, write_snapshot
from streaming.offsets.batches import encode_control, spans, stamped
from tests.unit.metadata_log.metadata_records import FOOTER, batch, control_batch, topic, write

HEADER, VOTERS = 3, 6
NOW_MS = 1_000
FORMATTED = f"{METADATA_PARTITION}/{0:020}-{0:010}.checkpoint"


def feature(name: str, level: int) -> Record:
    return Record(RecordType.FEATURE_LEVEL, {"name": name, "feature_level": level})


def topics(count: int) -> list[Record]:
    return [topic(f"t{number}") for number in range(count)]


def written_to(path: Path) -> list[tuple[int, int, int]]:
    """The first and the last offset of each batch, and its leader epoch."""
    found = spans(path.read_bytes())
    return [(span.base_offset, span.last_offset, span.leader_epoch) for span in found]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path, topics(2), NOW_MS)
    assert path == tmp_path / METADATA_PARTITION / f"{5:020}-{1:010}.checkpoint"
    log = MetadataLog(tmp_path)
    assert list(log.records()) == [feature("metadata.version", 21), *topics(2)]
    assert log.end == 5
    assert written_to(path) == [(0, 0, 1), (1, 3, 1), (4, 4, 1)]


def test_many_records_are_several_batches(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path, topics(2500), NOW_MS)
    assert [last for _, last, _ in written_to(path)] == [0, 1000, 2000, 2501, 2502]
    assert list(MetadataLog(tmp_path).records())[1:] == topics(2500)


def test_it_begins_with_what_the_folder_was_formatted_with(tmp_path: Path) -> None:
    """But not with eligible leader replicas."""
    levels = [
        feature("metadata.version", 30),
        feature("eligible.leader.replicas.version", 1),
        feature("group.version", 1),
    ]
    unknown = bytes([1, 99, 0, 0])
    values = [*map(encode_record, levels), unknown]
    head = stamped(encode_control(HEADER, b"\0\0" + bytes(9), 7), 0, 0)
    formatted = tmp_path / FORMATTED
    write(formatted.parent, 0, head, batch(1, values), control_batch(5, FOOTER), snapshot=True)
    (formatted.parent / f"{0:020}-{1:010}.checkpoint").rename(formatted)
    path = write_snapshot(tmp_path, topics(1), NOW_MS)
    kept = path.read_bytes()
    assert kept[: len(head)] == stamped(head, 0, 1)
    assert values[0] in kept and values[1] not in kept and values[2] in kept and unknown in kept
    assert written_to(path) == [(0, 0, 1), (1, 4, 1), (5, 5, 1)]


def test_voters_and_levels_may_be_in_two_files(tmp_path: Path) -> None:
    formatted = tmp_path / FORMATTED
    formatted.parent.mkdir()
    formatted.write_bytes(control_batch(0, VOTERS) + control_batch(1, FOOTER))
    levels = [encode_record(feature("metadata.version", 20))]
    (tmp_path / "bootstrap.checkpoint").write_bytes(batch(0, levels))
    path = write_snapshot(tmp_path, [], NOW_MS)
    assert path.read_bytes().startswith(control_batch(0, VOTERS))
    assert written_to(path) == [(0, 0, 1), (1, 1, 1), (2, 2, 1)]
    formatted.unlink()
    assert list(MetadataLog(tmp_path).records()) == [feature("metadata.version", 20)]


@pytest.mark.parametrize("name", [f"{0:020}.log", f"{9:020}-{2:010}.checkpoint", "quorum-state"])
def test_a_controller_that_has_run_keeps_what_it_has(tmp_path: Path, name: str) -> None:
    below = tmp_path / METADATA_PARTITION
    below.mkdir()
    (below / name).write_bytes(b"")
    with pytest.raises(CannotWriteSnapshot, match=f"has a metadata log already .{name}"):
        write_snapshot(tmp_path, topics(1), NOW_MS)
    assert [path.name for path in below.iterdir()] == [name]


def test_what_it_was_formatted_with_has_to_be_readable(tmp_path: Path) -> None:
    (tmp_path / "bootstrap.checkpoint").write_bytes(bytes(100))
    with pytest.raises(UnreadableMetadataLog, match=r"bootstrap.checkpoint: offset 0"):
        write_snapshot(tmp_path, topics(1), NOW_MS)
    assert not (tmp_path / METADATA_PARTITION).exists()


def test_kinds_without_a_body_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="NO_OP"):
        write_snapshot(tmp_path, [Record(RecordType.NO_OP, {})], NOW_MS)
