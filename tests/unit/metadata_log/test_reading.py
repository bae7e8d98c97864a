"""A metadata log's folder: which files count, and what is wrong with some."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.metadata_log.reading import METADATA_PARTITION, MetadataLog
from streaming.metadata_log.reading import UnreadableMetadataLog as Unreadable
from streaming.metadata_log.records import RecordType
from tests.unit.metadata_log.metadata_records import (
    FOOTER,
    batch,
    control_batch,
    encoded,
    topic,
    values,
    write,
)

A, B, C, D = (values([topic(name)])[0] for name in "abcd")


def read(folder: Path) -> tuple[list[str], int]:
    """The topics of which there are records, and the end of the log."""
    log = MetadataLog(folder)
    return [record.body["name"] for record in log.records()], log.end


def test_segments_follow_each_other(tmp_path: Path) -> None:
    write(tmp_path, 0, batch(0, [A, B]))
    write(tmp_path, 2, control_batch(2, 2), batch(3, [C]))
    (tmp_path / "00000000000000000000.index").write_bytes(b"?")
    assert read(tmp_path) == (["a", "b", "c"], 4)


def test_it_may_be_below_the_folder_that_is_given(tmp_path: Path) -> None:
    write(tmp_path / METADATA_PARTITION, 0, batch(0, [A]))
    assert read(tmp_path) == (["a"], 1)


def test_the_newest_snapshot_counts_and_what_follows_it(tmp_path: Path) -> None:
    write(tmp_path, 1, batch(0, [A]), snapshot=True)
    write(tmp_path, 3, batch(0, [B, C]), control_batch(2, FOOTER), snapshot=True)
    (tmp_path / "00000000000000000009-0000000001.checkpoint.part").write_bytes(b"?")
    write(tmp_path, 0, batch(0, [A, A]))
    write(tmp_path, 2, batch(2, [A, D]), batch(4, [A]))
    assert read(tmp_path) == (["b", "c", "d", "a"], 5)


def test_segments_below_the_snapshot_are_not_read(tmp_path: Path) -> None:
    write(tmp_path, 3, batch(0, [B]), snapshot=True)
    write(tmp_path, 0, bytes(100))
    write(tmp_path, 1, bytes(100))
    write(tmp_path, 2, batch(2, [A, C]))
    assert read(tmp_path) == (["b", "c"], 4)


def test_a_snapshot_alone(tmp_path: Path) -> None:
    write(tmp_path, 7, batch(0, [A]), snapshot=True)
    assert read(tmp_path) == (["a"], 7)


def test_what_has_just_begun_to_be_written_is_left(tmp_path: Path) -> None:
    write(tmp_path, 0, batch(0, [A]), batch(1, [B])[:-1])
    assert read(tmp_path) == (["a"], 1)


def test_no_log(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(Unreadable, match=f"{folder} has no KRaft metadata log"):
            read(folder)


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_hole(tmp_path: Path, snapshot: bool) -> None:
    if snapshot:
        write(tmp_path, 1, batch(0, [A]), snapshot=True)
    else:
        write(tmp_path, 0, batch(0, [A]))
    write(tmp_path, 3, batch(3, [B]))
    with pytest.raises(Unreadable, match="offsets 1 to 2 are missing"):
        read(tmp_path)


def test_a_batch_that_was_damaged(tmp_path: Path) -> None:
    damaged = bytearray(batch(4, [A]))
    damaged[-2] ^= 1
    path = write(tmp_path, 0, batch(0, [A, A, A, A]), bytes(damaged))
    with pytest.raises(Unreadable, match=f"{path}: offset 4: its checksum is another"):
        read(tmp_path)


def test_a_file_that_has_no_batches(tmp_path: Path) -> None:
    path = write(tmp_path, 0, bytes(100))
    with pytest.raises(Unreadable, match=f"{path}: offset 0: 12 bytes"):
        read(tmp_path)


def test_a_record_that_cannot_be_read(tmp_path: Path) -> None:
    unheard = encoded(RecordType.NO_OP, {}).replace(b"\x14", b"\x7f")
    path = write(tmp_path, 0, batch(0, [A, unheard]))
    with pytest.raises(Unreadable, match=f"{path}: offset 1: a record of kind 127"):
        read(tmp_path)
