"""One segment as a file being written: created whole, appended to, cut, fsynced."""

from __future__ import annotations

import os
from pathlib import Path

from checkpoints.durable import fsync_folder, naming
from streaming.log.embedded_format import HEADER_BYTES, SegmentHeader, pack_header, segment_name


def create_segment(folder: Path, base_offset: int, base_time_ms: int) -> Path:
    """Create an empty segment durably; it appears under its name only with a whole header."""
    file = folder / segment_name(base_offset)
    unfinished = file.with_suffix(".tmp")
    with naming(unfinished), unfinished.open("wb") as opened:
        opened.write(pack_header(SegmentHeader(base_offset, base_time_ms)))
        opened.flush()
        os.fsync(opened.fileno())
    unfinished.rename(file)
    try:
        fsync_folder(folder)
    except OSError:
        file.unlink()
        raise
    return file


def let_go_of_cache(file: Path) -> None:
    """Have a segment read from the disk again: after a failed fsync the page cache may hold, as if
    it were written, what never got there.
    """
    if not hasattr(os, "posix_fadvise"):  # as on macOS
        return
    fd = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.fdatasync(fd)  # only what is written is let go of
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


class SegmentWriter:
    """The last segment of a log, with the position where the next record goes."""

    def __init__(self, file: Path, position: int = HEADER_BYTES) -> None:
        """Open `file` and cut it at `position`."""
        self._fd = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            self.cut(position)
        except BaseException:
            os.close(self._fd)
            raise

    def is_full(self, more_bytes: int, segment_bytes: int) -> bool:
        """Whether `more_bytes` belong into the next segment; never for an empty segment."""
        return self.position > HEADER_BYTES and self.position + more_bytes > segment_bytes

    def cut(self, position: int) -> None:
        os.ftruncate(self._fd, position)
        self.position = position

    def write(self, data: bytes) -> None:
        """Write all of `data`; after an error the file may hold a part of it."""
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._fd, rest, self.position)
            self.position += written
            rest = rest[written:]

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def close(self) -> None:
        os.close(self._fd)
