"""Files of a checkpoint that a machine's loss of power left empty, cut or missing."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from checkpoints.damage import damage, lost_states
from checkpoints.layout import set_aside


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
    return folder


def test_a_whole_checkpoint_and_none_are_not_damaged(checkpoint, tmp_path):
    assert damage(checkpoint) is None
    assert damage(tmp_path / "none") is None


def test_a_source_without_an_offset_is_not_damage(checkpoint):
    write(checkpoint / "offsets" / "9", "v1\n{}\n-")
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


def test_a_plan_that_is_missing_is_named(checkpoint):
    (checkpoint / "offsets" / "8").unlink()
    assert damage(checkpoint) == "offsets/8 is missing"


def test_states_that_are_lost_are_told_from_other_errors():
    line = "SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred"
    assert lost_states(RuntimeError(f"calling o201.\n{line}\n\tat org.apache")) == line
    assert lost_states(RuntimeError("Java heap space")) is None


def test_one_that_was_set_aside_makes_room_for_the_next(checkpoint):
    broken = set_aside(checkpoint)
    assert (broken.name, damage(broken), checkpoint.exists()) == ("checkpoint.broken", None, False)
    write(checkpoint / "metadata", "second")
    assert set_aside(checkpoint) == broken
    assert [one.name for one in broken.iterdir()] == ["metadata"]
