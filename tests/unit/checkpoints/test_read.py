"""How far a checkpoint has come, out of Spark's own files."""

from __future__ import annotations

import orjson

from checkpoints.read import folded_until, has_state


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
