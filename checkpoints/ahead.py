"""How far decisions are carried out beyond what a checkpoint has committed.

The head start of a job (`streaming/starting/head_start.py`) notes it before it carries out a
batch, as Spark notes the plan of its own, and drops it when the query has come so far.
docs/checkpoint-format.md is the specification.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from checkpoints.durable import fsync_folder, read_file, write_whole
from checkpoints.layout import CheckpointMismatch

AHEAD_FILE = "ahead.json"


@dataclass(frozen=True, slots=True)
class Ahead:
    """What is decided on events before `done` is carried out; on [done, planned) perhaps.

    first: the first event of a query that had committed nothing; None: it had a checkpoint.
    """

    first: int | None
    done: int
    planned: int


def read_ahead(checkpoint: Path) -> Ahead | None:
    """Return what a checkpoint says; None when nothing was ever carried out ahead of it.

    Raises CheckpointMismatch when what it says cannot be read, OSError when it cannot.
    """
    path = checkpoint / AHEAD_FILE
    try:
        noted = orjson.loads(read_file(path))
        first = noted["first"]
        known = None if first is None else int(first)
        return Ahead(known, int(noted["done"]), int(noted["planned"]))
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError) as error:
        raise CheckpointMismatch(f"{path} cannot be read: {error}") from error


def note_ahead(checkpoint: Path, ahead: Ahead) -> None:
    """Keep it durably."""
    write_whole(checkpoint / AHEAD_FILE, orjson.dumps(asdict(ahead)))


def forget_ahead(checkpoint: Path) -> None:
    """Drop it durably: the query has committed what was carried out ahead of it."""
    (checkpoint / AHEAD_FILE).unlink(missing_ok=True)
    fsync_folder(checkpoint)
