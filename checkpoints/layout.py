"""What a checkpoint was made with, and whether this program may go on from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from checkpoints.durable import read_file, write_whole
from checkpoints.machine_format import FORMAT_VERSION, READABLE_VERSIONS
from state.routing import GROUP_SLOTS, Layout

LAYOUT_FILE = "helmstream.json"
GROUPS = "group.slots"


class CheckpointMismatch(Exception):
    """A checkpoint that this program, as configured, must not go on from."""


def check_layout(checkpoint: Path, layout: Layout, partitions: int) -> None:
    """Compare as `compare_layout` does; note the layout down for a new checkpoint, and the present
    state format for one in an earlier format.
    """
    made_with = compare_layout(checkpoint, layout, partitions)
    if GROUPS in made_with and made_with["state.format"] == FORMAT_VERSION:
        return
    checkpoint.mkdir(parents=True, exist_ok=True)
    wanted = {**_values(layout, partitions), "state.format": FORMAT_VERSION}
    write_whole(checkpoint / LAYOUT_FILE, orjson.dumps(wanted, option=orjson.OPT_INDENT_2))


def compare_layout(checkpoint: Path, layout: Layout, partitions: int) -> dict[str, Any]:
    """Compare a checkpoint with what is configured, and return what it was made with; {} where
    nothing says it.

    Raises CheckpointMismatch naming the setting, the checkpoint's value and the configured one.
    """
    path = checkpoint / LAYOUT_FILE
    if not path.exists():
        return {}
    made_with = _made_with(path)
    # One that was made before there were groups takes on any number of group slots.
    taken = {GROUPS: layout.group_slots, **made_with}
    _refuse_other(checkpoint, taken, _values(layout, partitions))
    return made_with


def _values(layout: Layout, partitions: int) -> dict[str, int]:
    return {
        "slots": layout.slots,
        "shuffle.partitions": partitions,
        GROUPS: layout.group_slots,
    }


def _refuse_other(checkpoint: Path, made_with: dict[str, int], wanted: dict[str, int]) -> None:
    for key, value in wanted.items():
        if made_with.get(key) != value:
            raise CheckpointMismatch(
                f"the checkpoint {checkpoint} was made with {key} = {made_with.get(key)}, "
                f"now it is {value}; set it back, or move it: helmstream checkpoint reslot"
            )
    if made_with.get("state.format") not in READABLE_VERSIONS:
        raise CheckpointMismatch(
            f"the checkpoint {checkpoint} has state.format = {made_with.get('state.format')}, "
            f"this program reads {', '.join(map(str, READABLE_VERSIONS))}"
        )


def _made_with(path: Path) -> dict[str, Any]:
    """Return what LAYOUT_FILE says; raises CheckpointMismatch, OSError."""
    try:
        made_with = orjson.loads(read_file(path))
    except ValueError as error:
        raise CheckpointMismatch(f"{path} cannot be read: {error}; {_move(path)}") from error
    if not isinstance(made_with, dict) or "slots" not in made_with:
        raise CheckpointMismatch(f"{path} does not say slots; {_move(path)}")
    return made_with


def _move(path: Path) -> str:
    return f"move {path.parent} away: without it the cluster is loaded again"


def layout_of(checkpoint: Path) -> Layout:
    """Return how many slots and group slots a checkpoint was made with.

    Raises CheckpointMismatch when it does not say.
    """
    path = checkpoint / LAYOUT_FILE
    if not path.is_file():
        raise CheckpointMismatch(
            f"{checkpoint} is no checkpoint of helmstream: no {LAYOUT_FILE}, which says how many"
            " slots it was made with"
        )
    made_with = _made_with(path)
    return Layout(int(made_with["slots"]), int(made_with.get(GROUPS, GROUP_SLOTS)))
