"""How far a checkpoint has come, out of Spark's own files."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from checkpoints import read
from checkpoints.ahead import AHEAD_FILE, Ahead, note_ahead, read_ahead
from checkpoints.layout import LAYOUT_FILE, CheckpointMismatch, check_layout, layout_of
from checkpoints.read import folded_until, has_state, retained_batch, snapshot_of
from checkpoints.snapshot import Snapshot
from state.routing import Layout
from streaming.commands.frame import expected_exit_code


def batch(checkpoint, number, offset, *, committed=True):
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True, exist_ok=True)
    metadata = orjson.dumps({"batchWatermarkMs": 0}).decode()
    source = orjson.dumps({"offset": offset}).decode()
    (checkpoint / "offsets" / str(number)).write_text(f"v1\n{metadata}\n{source}")
    (checkpoint / "offsets" / f".{number}.crc").write_bytes(b"crc")
    if committed:
        (checkpoint / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
        (checkpoint / "commits" / f".{number}.crc").write_bytes(b"crc")


def test_nothing_is_folded_without_a_committed_batch(tmp_path):
    assert (has_state(tmp_path), folded_until(tmp_path)) == (False, 0)
    batch(tmp_path, 0, 7, committed=False)
    assert (has_state(tmp_path), folded_until(tmp_path)) == (False, 0)


def test_the_last_committed_batch_counts_not_the_last_planned(tmp_path):
    for number in range(9, 12):
        batch(tmp_path, number, number * 10)
    batch(tmp_path, 12, 999, committed=False)
    assert (has_state(tmp_path), folded_until(tmp_path)) == (True, 110)


def test_the_offset_of_a_snapshot_is_that_of_its_states_though_the_job_goes_on(
    tmp_path, monkeypatch
):
    check_layout(tmp_path, Layout(4, 2), 2)
    for number in range(9, 12):
        batch(tmp_path, number, number * 10)

    def collected(spark, checkpoint, batch_id):
        read_of = retained_batch(checkpoint, batch_id)
        batch(checkpoint, 12, 999)
        return {0: str(read_of).encode()}

    monkeypatch.setattr(read, "read_states", collected)
    assert snapshot_of(None, tmp_path) == Snapshot(110, Layout(4, 2), {0: b"11"})
    assert snapshot_of(None, tmp_path) == Snapshot(999, Layout(4, 2), {0: b"12"})
    assert snapshot_of(None, tmp_path, 10) == Snapshot(100, Layout(4, 2), {0: b"10"})


def test_a_batch_that_is_not_retained_is_refused(tmp_path):
    with pytest.raises(CheckpointMismatch, match="has no committed batch"):
        retained_batch(tmp_path, None)
    batch(tmp_path, 9, 90)
    batch(tmp_path, 10, 100)
    with pytest.raises(CheckpointMismatch, match=r"batch 7 is not in .*: it has 9 to 10"):
        retained_batch(tmp_path, 7)


def test_a_file_that_cannot_be_read_just_now_may_be_read_with_the_next_try(tmp_path, monkeypatch):
    def read_bytes(_):
        raise OSError(errno.EIO, "Input/output error")

    check_layout(tmp_path, Layout(4, 2), 2)
    batch(tmp_path, 3, 30)
    note_ahead(tmp_path, Ahead(None, 1, 2))
    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    files: dict[Callable[[Path], object], str] = {
        layout_of: LAYOUT_FILE,
        folded_until: "offsets/3",
        read_ahead: AHEAD_FILE,
    }
    for reader, file in files.items():
        with pytest.raises(OSError, match="Input/output error") as told:
            reader(tmp_path)
        assert told.value.filename == str(tmp_path / file)
        assert expected_exit_code(told.value) == 1


@pytest.mark.parametrize("text", ["", "v1\n{}\n{", "v1\n{}\n{}", None])
def test_a_batch_whose_end_cannot_be_read_is_named(tmp_path, text):
    batch(tmp_path, 3, 30)
    path = tmp_path / "offsets" / "3"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(CheckpointMismatch, match="offsets/3 cannot be read"):
        folded_until(tmp_path)
