"""What Spark's state store has written is read without Spark, or not at all."""

from __future__ import annotations

import shutil
import struct
import zlib
from pathlib import Path

import pytest

from checkpoints.read import read_states
from checkpoints.state_files import StatesUnreadable, read_state_files
from tests.logs.state_logs import long_log
from tests.spark.query_run import Recorder, Run

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", params=[1, 2], ids=["one store", "two stores"])
def written(spark, tmp_path_factory, request) -> Path:
    """A checkpoint of several batches."""
    data_dir = tmp_path_factory.mktemp("written")
    run = Run(spark, data_dir, long_log(11), **{"shuffle.partitions": request.param})
    run.until_done(Recorder())
    return run.folders.checkpoint


@pytest.fixture
def checkpoint(written, tmp_path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "checkpoint"))


def files(checkpoint: Path) -> list[Path]:
    """The changes of one store, ascending."""
    found = checkpoint.glob("state/0/0/*.delta")
    return sorted(found, key=lambda path: int(path.stem))


def sums(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def write_sums(path: Path) -> None:
    content = path.read_bytes()
    chunks = [zlib.crc32(content[at : at + 512]) for at in range(0, len(content), 512)]
    sums(path).write_bytes(struct.pack(f">4sI{len(chunks)}I", b"crc\0", 512, *chunks))


def test_states_are_those_that_spark_reads(spark, written):
    states = read_state_files(written)
    assert len(states) > 2
    assert states == read_states(spark, written)


def test_a_batch_that_is_not_committed_yet_can_be_read(written, checkpoint):
    last = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    (checkpoint / "commits" / str(last)).unlink()
    assert read_state_files(checkpoint, last) == read_state_files(written)
    assert read_state_files(checkpoint) == read_state_files(written, last - 1)


def test_too_much_is_not_read(written):
    size = sum(path.stat().st_size for path in written.glob("state/0/*/*.delta"))
    assert read_state_files(written, most_bytes=size) == read_state_files(written)
    with pytest.raises(StatesUnreadable, match=f"{size} bytes are more than {size - 1}"):
        read_state_files(written, most_bytes=size - 1)


def test_a_snapshot_stands_for_all_changes_before_it(written, checkpoint):
    first, second, *_ = files(checkpoint)
    # What the first batch has written is all there is: the same rows as a snapshot's.
    first.rename(first.with_suffix(".snapshot"))
    write_sums(first.with_suffix(".snapshot"))
    assert read_state_files(checkpoint) == read_state_files(written)
    second.unlink()
    with pytest.raises(StatesUnreadable, match=second.name):
        read_state_files(checkpoint)


def test_a_checkpoint_without_a_batch_has_no_states(tmp_path):
    assert read_state_files(tmp_path) == {}


@pytest.mark.parametrize("checked", [True, False], ids=["with its sums", "with new ones"])
@pytest.mark.parametrize("kept", [0, 5, 40, -1])
def test_a_file_that_was_cut_is_not_guessed_at(checkpoint, kept, checked):
    newest = files(checkpoint)[-1]
    newest.write_bytes(newest.read_bytes()[:kept])
    if not checked:
        write_sums(newest)
    with pytest.raises(StatesUnreadable):
        read_state_files(checkpoint)


def test_a_file_that_was_changed_does_not_match_its_sums(checkpoint):
    newest = files(checkpoint)[-1]
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    with pytest.raises(StatesUnreadable, match=f"{newest.name} does not match its checksums"):
        read_state_files(checkpoint)


def test_a_file_without_sums_is_left_to_spark(checkpoint):
    sums(files(checkpoint)[-1]).unlink()
    with pytest.raises(StatesUnreadable, match="crc"):
        read_state_files(checkpoint)


def test_states_of_another_store_are_left_to_spark(checkpoint):
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.write_text(newest.read_text().replace("HDFSBacked", "RocksDB"))
    with pytest.raises(StatesUnreadable, match=r"providerClass=.*RocksDB"):
        read_state_files(checkpoint)
