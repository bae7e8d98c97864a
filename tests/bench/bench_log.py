"""The embedded log against a plain file: appends with fsync, and reads.

Run: python -m tests.bench.bench_log [seconds per measurement]. One JSON object per line; the ratio
is to the plain twin measured right before it in the same run, higher is better for the log.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.log.embedded_format import RECORD_HEADER_BYTES

PAYLOAD = b"x" * 200
RECORD = NewRecord("alter_partition_requested", "a-topic-name", PAYLOAD)
STORED_BYTES = RECORD_HEADER_BYTES + len(RECORD.kind) + len(RECORD.key) + len(PAYLOAD)
READ_RECORDS = 100_000


def per_second(seconds: float, work: Callable[[], int]) -> float:
    """How much of `work` is done in a second; `work` returns how much one call did."""
    done, began = 0, time.perf_counter()
    while (passed := time.perf_counter() - began) < seconds:
        done += work()
    return done / passed


def plain_appends(folder: Path, seconds: float) -> float:
    """Write a record's bytes to a file and fsync it: what one durable append costs at least."""
    fd = os.open(folder / "plain", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:

        def append() -> int:
            os.write(fd, b"x" * STORED_BYTES)
            os.fdatasync(fd)
            return 1

        return per_second(seconds, append)
    finally:
        os.close(fd)


def log_appends(folder: Path, seconds: float, threads: int) -> float:
    with EmbeddedLogWriter(folder / f"log-{threads}") as writer:
        rates: list[float] = []

        def work() -> None:
            rates.append(per_second(seconds, lambda: len(writer.append([RECORD]))))

        running = [threading.Thread(target=work) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return sum(rates)


def plain_reads(folder: Path, seconds: float) -> float:
    """Split a file of records of a known size, without checking or opening them."""
    file = folder / "to-read"
    file.write_bytes(b"x" * STORED_BYTES * READ_RECORDS)

    def read() -> int:
        data = file.read_bytes()
        return len([data[at : at + STORED_BYTES] for at in range(0, len(data), STORED_BYTES)])

    return per_second(seconds, read)


def log_reads(folder: Path, seconds: float, *, rows: bool) -> float:
    path = folder / "log-to-read"
    with EmbeddedLogWriter(path) as writer:
        if writer.end_offset() == 0:
            writer.append([RECORD] * READ_RECORDS)
    with EmbeddedLogReader(path) as reader:

        def read() -> int:
            if rows:
                return sum(map(len, reader.event_rows(0, READ_RECORDS)))
            return sum(1 for _ in reader.read(0, READ_RECORDS))

        read()
        return per_second(seconds, read)


def report(what: str, measured: float, plain: float) -> None:
    line = {
        "bench": "log",
        "what": what,
        "per_second": round(measured),
        "plain_per_second": round(plain),
        "ratio_to_plain": round(measured / plain, 3),
    }
    sys.stdout.write(json.dumps(line) + "\n")


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as temporary:
        folder = Path(temporary)
        for threads in (1, 16):
            plain = plain_appends(folder, seconds)
            report(f"appends_{threads}_threads", log_appends(folder, seconds, threads), plain)
        for what, rows in (("reads_records", False), ("reads_rows", True)):
            plain = plain_reads(folder, seconds)
            report(what, log_reads(folder, seconds, rows=rows), plain)


if __name__ == "__main__":
    main()
