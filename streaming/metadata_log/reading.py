"""Reads a KRaft controller's metadata log from its folder: the newest snapshot, and what follows.

A snapshot's name has the offset at which the log goes on (Snapshots.filenameFromSnapshotId), a
segment's the offset that it begins with.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from streaming.errors import HelmstreamError
from streaming.metadata_log.records import Record, decode_record
from streaming.offsets.batches import (
    ReadBatch,
    UnreadableBatch,
    is_intact,
    read_batches,
    spans,
)
from streaming.wire.errors import MalformedFrame

METADATA_PARTITION = "__cluster_metadata-0"
_SEGMENT = re.compile(r"(\d{20})\.log", re.ASCII)
_SNAPSHOT = re.compile(r"(\d{20})-\d{10}\.checkpoint", re.ASCII)


class UnreadableMetadataLog(HelmstreamError):
    """A folder has no metadata log that can be read; the message says what is wrong with it."""

    exit_code = 2


class MetadataLog:
    """The metadata log in a folder, or in METADATA_PARTITION below it."""

    def __init__(self, folder: Path) -> None:
        """Take the folder."""
        below = folder / METADATA_PARTITION
        self.folder = below if below.is_dir() else folder
        self.end = 0
        """The offset after the last record that was read."""

    def records(self) -> Iterator[Record]:
        """Yield all records that make up what the controller knows, in order.

        What the controller has just begun to write ends them. Raises UnreadableMetadataLog.
        """
        snapshots, segments = self._named(_SNAPSHOT), self._named(_SEGMENT)
        if not snapshots and not segments:
            raise UnreadableMetadataLog(
                f"{self.folder} has no KRaft metadata log (no segment and no snapshot): give the"
                f" folder {METADATA_PARTITION} of a controller, or what it is in"
            )
        self.end = max(snapshots, default=0)
        if snapshots:
            for batch in _batches(snapshots[self.end]):
                yield from _decoded(snapshots[self.end], batch)
        for base in self._after_snapshot(sorted(segments)):
            for batch in _batches(segments[base], self.end):
                if batch.base_offset > self.end:
                    raise UnreadableMetadataLog(
                        f"{self.folder}: offsets {self.end} to {batch.base_offset - 1} are missing"
                    )
                yield from _decoded(segments[base], batch, self.end)
                self.end = batch.last_offset + 1

    def _after_snapshot(self, bases: Sequence[int]) -> Iterator[int]:
        """Yield the segments that have something behind the snapshot, as far as their names say."""
        for base, following in itertools.zip_longest(bases, bases[1:]):
            if following is None or following > self.end:
                yield base

    def _named(self, pattern: re.Pattern[str]) -> dict[int, Path]:
        """Return files of a kind by their offset; none where there is no folder."""
        found = ((pattern.fullmatch(path.name), path) for path in self.folder.glob("*"))
        return {int(match[1]): path for match, path in found if match}


def _batches(path: Path, start: int = 0) -> Iterator[ReadBatch]:
    """Yield the whole batches of a file with offsets from start on."""
    data = path.read_bytes()
    try:
        for span in spans(data):
            if span.last_offset < start:
                continue
            whole = data[span.start : span.end]
            if not is_intact(whole):
                raise UnreadableBatch(f"offset {span.base_offset}: its checksum is another")
            yield from read_batches(whole)
    except UnreadableBatch as error:
        raise UnreadableMetadataLog(f"{path}: {error}") from error


def _decoded(path: Path, batch: ReadBatch, start: int = 0) -> Iterator[Record]:
    for offset, record in enumerate(batch.records, batch.base_offset):
        if offset < start:
            continue
        try:
            yield decode_record(record.value or b"")
        except MalformedFrame as error:
            raise UnreadableMetadataLog(f"{path}: offset {offset}: {error.reason}") from error
