"""A checkpoint that cannot be read is not found whole."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from unittest.mock import Mock

import orjson
import pytest

from checkpoints.layout import CheckpointMismatch, check_layout
from state.routing import Layout
from streaming.checkpoint_tools.check import verify_checkpoint
from streaming.commands.frame import expected_exit_code
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.paths import DataDir
from tests.fixtures.job_checkpoints import note_state_format


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A data folder with one committed batch without machines, and its log."""
    folders = DataDir(tmp_path)
    check_layout(folders.checkpoint, Layout(1, 1), 1)
    plan = f"v1\n{{}}\n{orjson.dumps({'offset': 0}).decode()}"
    for name, text in (("offsets", plan), ("commits", "v1\n{}")):
        (folders.checkpoint / name).mkdir()
        (folders.checkpoint / name / "0").write_text(text)
    note_state_format(folders.checkpoint)
    with EmbeddedLogWriter(folders.events) as writer:
        writer.append([NewRecord("kind", "", b"")])
    monkeypatch.setattr("checkpoints.read.read_states", lambda *_: {})
    return folders


@pytest.mark.parametrize(
    ("damaged", "told"),
    [
        (lambda log: log[:40] + bytes([log[40] ^ 1]) + log[41:], "at byte 32, offset 0: "),
        (lambda log: log[:-1], "offset 2: file ends, 1 more records were durable"),
    ],
    ids=["flipped", "cut"],
)
def test_a_damaged_log_is_found_wherever_no_batch_needs_it(folders, damaged, told):
    with EmbeddedLogWriter(folders.events) as writer:
        for _ in range(2):
            writer.append([NewRecord("kind", "", b"")])
    (log,) = folders.events.glob("*.log")
    log.write_bytes(damaged(log.read_bytes()))
    (found,) = (check for check in verify_checkpoint(Mock(), folders) if check.passed is False)
    assert found.what == "event log"
    assert told in found.found


def eio(*_: object) -> bytes:
    raise OSError(errno.EIO, "Input/output error")


def test_nothing_is_wrong_where_there_is_only_one_batch(folders):
    assert {check.passed for check in verify_checkpoint(Mock(), folders)} == {True, None}


def test_a_batch_that_the_job_lets_go_of_meanwhile_is_nothing_wrong(folders, monkeypatch):
    for name in ("offsets", "commits"):
        batches = folders.checkpoint / name
        (batches / "1").write_bytes((batches / "0").read_bytes())

    def read_slowly(_: object, checkpoint: Path, batch_id: int) -> dict[int, bytes]:
        if batch_id == 0:
            for name in ("offsets", "commits"):
                (checkpoint / name / "0").unlink()
            raise CheckpointMismatch("the batch is not retained")
        return {}

    monkeypatch.setattr("checkpoints.read.read_states", read_slowly)
    *others, folded_again = verify_checkpoint(Mock(), folders)
    assert all(check.passed for check in others)
    assert folded_again.passed is None
    assert "let go of batch 0" in folded_again.found


@pytest.mark.parametrize(
    ("reads", "name", "file"),
    [
        (Path, "read_bytes", "checkpoint/metadata"),
        (os, "pread", "events/00000000000000000000.log"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(folders, monkeypatch, reads, name, file):
    monkeypatch.setattr(reads, name, eio)
    with pytest.raises(OSError, match="Input/output error") as told:
        verify_checkpoint(Mock(), folders)
    assert told.value.filename == str(folders.root / file)
    assert expected_exit_code(told.value) == 1
