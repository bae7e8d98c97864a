"""Whether Spark can go on from a checkpoint: what a machine that lost its power leaves of one.

Spark closes and renames the files of a checkpoint and makes nothing durable, so those of the last
seconds may be empty, cut or missing afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

from checkpoints.read import committed_batches, planned_batches

_NO_VALUE = "-"  # in place of a source's offset
_STATE_LOST = "CANNOT_LOAD_STATE_STORE"

Read = Callable[[str], object]
"""Takes a file's text apart; raises ValueError."""


def damage(checkpoint: Path) -> str | None:
    """Say which file Spark cannot read and why; None when all that it needs first can be read.

    States themselves Spark alone can read: `lost_states` says whether that failed.
    Source: Spark's OffsetSeqLog and CommitLog (a version, then JSON line by line), StreamMetadata.
    """
    for path, read in _needed(checkpoint):
        try:
            read(path.read_text("utf-8", "replace"))
        except FileNotFoundError:
            return f"{path.relative_to(checkpoint)} is missing"
        except (OSError, ValueError) as error:
            return f"{path.relative_to(checkpoint)} cannot be read: {error}"
    return None


def lost_states(error: Exception) -> str | None:
    """Return where an error of Spark's says that states cannot be read; None: it is another one."""
    said = (line for line in str(error).splitlines() if _STATE_LOST in line)
    return next(said, None)


def _needed(checkpoint: Path) -> Iterator[tuple[Path, Read]]:
    if (metadata := checkpoint / "metadata").exists():
        yield metadata, orjson.loads
    committed, planned = committed_batches(checkpoint), planned_batches(checkpoint)
    for batch in sorted({*committed[-1:], *planned[-1:]}):
        yield checkpoint / "offsets" / str(batch), _planned
    for batch in committed[-1:]:
        yield checkpoint / "commits" / str(batch), _committed
    for pattern in ("state/*/_metadata/*", "state/*/*/_metadata/*"):
        for path in sorted(checkpoint.glob(pattern)):
            if path.is_file():
                yield path, _not_empty


def _planned(text: str) -> None:
    _lines(text, 3)


def _committed(text: str) -> None:
    _lines(text, 2)


def _lines(text: str, at_least: int) -> None:
    lines = text.splitlines()
    if len(lines) < at_least:
        raise ValueError(f"it has {len(lines)} lines of {at_least}")
    for line in lines[1:]:
        if line != _NO_VALUE:
            orjson.loads(line)


def _not_empty(text: str) -> None:
    if not text:
        raise ValueError("it is empty")
