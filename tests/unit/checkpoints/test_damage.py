"""Files of a checkpoint that a machine's loss of power left empty, cut or missing."""

from __future__ import annotations

import errno
import shutil
import struct
import zlib
from pathlib import Path

import orjson
import pytest

from checkpoints.damage import damage, lost_states, move_aside

SCHEMA = "state/0/0/_metadata/schema"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    """Batches 7 and 8 are committed, 9 is planned."""
    folder = tmp_path / "checkpoint"
    metadata = orjson.dumps({"batchWatermarkMs": 0}).decode()
    for batch in (7, 8, 9):
        write(folder / "offsets" / str(batch), f'v1\n{metadata}\n{{"offset":{batch}0}}')
    for batch in (7, 8):
        write(folder / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":0}')
    write(folder / "metadata", '{"id":"f7d80706-0cbd-401e-895e-75513b90b417"}')
    write(folder / "state" / "0" / "_metadata" / "metadata", "v1\n{}")
    (folder / "state" / "0" / "0" / "_metadata").mkdir(parents=True)
    (folder / "state" / "0" / "0" / "_metadata" / "schema").write_bytes(b"\0\2v2\xff\xfe")
    write(folder / "helmstream.json", "{}")
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        sums_of(path).write_bytes(struct.pack(">4sII", b"crc", 512, zlib.crc32(path.read_bytes())))
    return folder


def sums_of(path: Path) -> Path:
    """Where Hadoop keeps a file's checksums."""
    return path.with_name(f".{path.name}.crc")


def test_a_whole_checkpoint_and_none_are_not_damaged(checkpoint, tmp_path):
    assert damage(checkpoint) is None
    assert damage(tmp_path / "none") is None


def test_a_source_without_an_offset_is_not_damage(checkpoint):
    write(checkpoint / "offsets" / "9", "v1\n{}\n-")
    sums_of(checkpoint / "offsets" / "9").unlink()
    assert damage(checkpoint) is None


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("offsets/8", "", "offsets/8 cannot be read: it has 0 lines of 3"),
        ("offsets/8", "v1\n{}", "offsets/8 cannot be read: it has 2 lines of 3"),
        ("offsets/9", "", "offsets/9 cannot be read: it has 0 lines of 3"),
        ("offsets/8", 'v1\n{}\n{"offs', "offsets/8 cannot be read: unexpected end of data"),
        ("commits/8", "v1", "commits/8 cannot be read: it has 1 lines of 2"),
        ("commits/8", "\0" * 30, "commits/8 cannot be read: it has 1 lines of 2"),
        ("metadata", "", "metadata cannot be read: "),
        ("state/0/_metadata/metadata", "", "state/0/_metadata/metadata cannot be read: it is em"),
        ("state/0/0/_metadata/schema", "", "state/0/0/_metadata/schema cannot be read: it is em"),
        ("offsets/7", "", None),
    ],
)
def test_a_file_that_spark_reads_first_is_named_with_what_is_wrong(checkpoint, name, text, told):
    write(checkpoint / name, text)
    found = damage(checkpoint)
    assert found is None if told is None else (found or "").startswith(told), found


@pytest.mark.parametrize(
    "name", ["metadata", "offsets/8", "state/0/_metadata/metadata", "state/0/0/_metadata/schema"]
)
def test_what_is_missing_is_named(checkpoint, name):
    (checkpoint / name).unlink()
    assert damage(checkpoint) == f"{name} is missing"


def test_states_that_are_all_missing_are_named_once_a_batch_is_committed(checkpoint):
    shutil.rmtree(checkpoint / "state")
    assert damage(checkpoint) == "state/0/_metadata/metadata is missing"
    shutil.rmtree(checkpoint / "commits")
    assert damage(checkpoint) is None


@pytest.mark.parametrize(
    "name",
    ["metadata", "offsets/8", "commits/8", "state/0/_metadata/metadata", SCHEMA],
)
def test_a_file_unlike_its_checksums_is_named(checkpoint, name):
    """What can be taken apart and is not what was written, Spark refuses too."""
    path = checkpoint / name
    path.write_bytes(path.read_bytes()[:-1] + b" }"[: 1 + (name != SCHEMA)])
    assert damage(checkpoint) == f"{name} cannot be read: it does not match its checksums"
    sums = sums_of(path)
    sums.write_bytes(sums.read_bytes()[:7])  # without its header it holds no checksums
    assert damage(checkpoint) is None
    sums.unlink()
    assert damage(checkpoint) is None


def test_a_file_that_cannot_be_read_just_now_is_no_damage(checkpoint, monkeypatch):
    def read_bytes(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    with pytest.raises(OSError, match="Input/output error"):
        damage(checkpoint)


UNLOADED = "SparkException: [CANNOT_LOAD_STATE_STORE.%s] An error occurred during loading state."
MISSING = UNLOADED % "CANNOT_READ_DELTA_FILE_NOT_EXISTS"
OTHER = UNLOADED % "UNCATEGORIZED"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (OTHER, "java.io.EOFException"),
        (OTHER, "java.io.IOException: Stream is corrupted"),
        (OTHER, "org.apache.hadoop.fs.ChecksumException: Checksum error: file:/c/1.delta at 0"),
        (OTHER, "java.io.FileNotFoundException: File file:/c/3.zip does not exist"),
        (MISSING, "java.io.FileNotFoundException: File file:/c/1.delta does not exist"),
        (MISSING, "java.io.FileNotFoundException: /c/1.delta (No such file or directory)"),
        (UNLOADED % "CANNOT_READ_SNAPSHOT_FILE_KEY_SIZE", ""),
        (UNLOADED % "UNEXPECTED_FILE_SIZE", ""),
    ],
)
def test_states_that_are_lost_are_told_with_where_spark_says_so(line, cause):
    assert lost_states(failed(line, cause)) == line


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (OTHER, "java.io.IOException: Input/output error"),
        (OTHER, "java.io.IOException: Stale file handle"),
        (OTHER, ""),
        (MISSING, "java.io.FileNotFoundException: /c/1.delta (Permission denied)"),
        (MISSING, "java.io.FileNotFoundException: /c/1.delta (Too many open files)"),
        (UNLOADED % "HDFS_STORE_PROVIDER_OUT_OF_MEMORY", "java.lang.OutOfMemoryError"),
        (UNLOADED % "UNRELEASED_THREAD_ERROR", ""),
        ("SparkException: Python worker exited unexpectedly", "java.io.EOFException"),
        ("Java heap space", ""),
    ],
)
def test_what_may_pass_is_told_from_states_that_are_lost(line, cause):
    assert lost_states(failed(line, cause)) is None


def failed(line, cause):
    """An error of Spark's, of a task that failed at a line for a cause."""
    caused = f"Caused by: {cause}\n\tat java.base" if cause else ""
    return RuntimeError(f"calling o201.\n{line}\n\tat org.apache\n{caused}")


def test_one_that_was_moved_aside_makes_room_for_the_next(checkpoint):
    broken = move_aside(checkpoint)
    assert (broken.name, damage(broken), checkpoint.exists()) == ("checkpoint.broken", None, False)
    write(checkpoint / "commits" / "3", "second")
    assert move_aside(checkpoint) == broken
    assert [one.name for one in broken.iterdir()] == ["commits"]


def test_one_without_states_is_not_kept_in_place_of_one_that_has_some(checkpoint):
    broken = move_aside(checkpoint)
    for _ in range(2):
        write(checkpoint / "offsets" / "0", "planned")
        assert move_aside(checkpoint).name == "checkpoint.uncommitted"
    assert (broken / "commits" / "8").exists()
