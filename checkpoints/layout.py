"""What a checkpoint was made with, and whether this program may go on from it."""

from __future__ import annotations

from pathlib import Path

import orjson

from checkpoints.machine_format import FORMAT_VERSION

LAYOUT_FILE = "helmstream.json"


class CheckpointMismatch(Exception):
    """A checkpoint that this program, as configured, must not go on from."""


def check_layout(checkpoint: Path, *, slots: int, partitions: int) -> None:
    """Compare a checkpoint with what is configured; note it down for a new checkpoint.

    Raises CheckpointMismatch naming the setting, the checkpoint's value and the configured one.
    """
    wanted = {"slots": slots, "shuffle.partitions": partitions, "state.format": FORMAT_VERSION}
    path = checkpoint / LAYOUT_FILE
    if not path.exists():
        checkpoint.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(wanted, option=orjson.OPT_INDENT_2))
        return
    made_with = orjson.loads(path.read_bytes())
    for key, value in wanted.items():
        if made_with.get(key) != value:
            raise CheckpointMismatch(
                f"the checkpoint {checkpoint} was made with {key} = {made_with.get(key)}, "
                f"now it is {value}; set it back, or start with another data.dir"
            )


def slots_of(checkpoint: Path) -> int:
    """Return how many slots a checkpoint was made with; raises CheckpointMismatch when it does not
    say.
    """
    path = checkpoint / LAYOUT_FILE
    if not path.is_file():
        raise CheckpointMismatch(f"{checkpoint} is no checkpoint of helmstream: no {LAYOUT_FILE}")
    return int(orjson.loads(path.read_bytes())["slots"])
