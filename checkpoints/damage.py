"""Whether Spark can go on from a checkpoint: what a machine that lost its power leaves of one.

Spark closes and renames the files of a checkpoint and makes nothing durable, so those of the last
seconds may be empty, cut or missing afterwards.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

from checkpoints.checksums import are_sums, matches, sums_file
from checkpoints.durable import fsync_folder, read_file
from checkpoints.read import committed_batches, has_state, planned_batches

_NO_VALUE = "-"  # in place of a source's offset
_STATE_UNLOADED = "CANNOT_LOAD_STATE_STORE"
_LOST = re.compile(
    rf"{_STATE_UNLOADED}\.(CANNOT_(READ|FIND)_|UNEXPECTED_FILE_SIZE|(KEY|VALUE)_ROW_FORMAT_)"
    r"|Caused by: (java\.io\.EOFException|org\.apache\.hadoop\.fs\.ChecksumException"
    r"|java\.util\.zip\.ZipException|java\.io\.IOException: Stream is corrupted"
    r"|java\.io\.FileNotFoundException: File \S+ does not exist)"
)
_MAY_PASS = re.compile(r"FileNotFoundException: .+ \((?!No such file)")
"""Java names any file so that it cannot open, with the reason: also for want of permission."""

STATE_FORMAT = ("state/0/_metadata/metadata", "state/0/0/_metadata/schema")
"""Written before the first batch is; of the query's only operator, and of its first partition."""

Read = Callable[[str], object]
"""Takes a file's text apart; raises ValueError."""


def damage(checkpoint: Path) -> str | None:
    """Say which file Spark cannot read and why; None when all that it needs first can be read.

    States themselves Spark alone can read: `lost_states` says whether that failed. Raises OSError
    when a file cannot be read that may be whole.
    Source: Spark's OffsetSeqLog and CommitLog (a version, then JSON line by line), StreamMetadata,
    OperatorStateMetadata, StateSchemaCompatibilityChecker.
    """
    for path, read in _needed(checkpoint):
        try:
            content = read_file(path)
            read(content.decode("utf-8", "replace"))
            _check_sums(path, content)
        except FileNotFoundError:
            return f"{path.relative_to(checkpoint)} is missing"
        except ValueError as error:
            return f"{path.relative_to(checkpoint)} cannot be read: {error}"
    return None


def lost_states(error: Exception) -> str | None:
    """Return where an error of Spark's says that states are missing or cut; None: it is another
    one, or states could not be read for a reason that may pass.

    Source: Spark's HDFSBackedStateStoreProvider and RocksDBStateStoreProvider, which say of
    whatever they meet that states cannot be loaded: as a condition of its own, or with its cause.
    """
    _, unloaded, why = str(error).partition(_STATE_UNLOADED)
    if not _LOST.search(unloaded + why) or _MAY_PASS.search(why):
        return None
    return next(line for line in str(error).splitlines() if _STATE_UNLOADED in line)


def move_aside(checkpoint: Path) -> Path:
    """Give a checkpoint that cannot be gone on from another name and return that; the one that was
    moved aside before is deleted. One without a committed batch has no states, and its own name.
    """
    reason = "broken" if has_state(checkpoint) else "uncommitted"
    aside = checkpoint.with_name(f"{checkpoint.name}.{reason}")
    if aside.exists():
        shutil.rmtree(aside)
    checkpoint.rename(aside)
    fsync_folder(checkpoint.parent)
    return aside


def _needed(checkpoint: Path) -> Iterator[tuple[Path, Read]]:
    committed, planned = committed_batches(checkpoint), planned_batches(checkpoint)
    metadata = checkpoint / "metadata"
    if committed or planned or metadata.exists():
        yield metadata, orjson.loads
    for batch in sorted({*committed[-1:], *planned[-1:]}):
        yield checkpoint / "offsets" / str(batch), _planned
    for batch in committed[-1:]:
        yield checkpoint / "commits" / str(batch), _committed
    if committed:
        for name in STATE_FORMAT:
            yield checkpoint / name, _not_empty


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


def _check_sums(path: Path, content: bytes) -> None:
    try:
        sums = read_file(sums_file(path))
    except FileNotFoundError:
        return
    if are_sums(sums) and not matches(content, sums):
        raise ValueError("it does not match its checksums")
