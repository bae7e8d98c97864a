"""The log between processes: readers beside the writer, and writers that are killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from streaming.log import futex
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter, LogLocked

READER = """
import sys, time
from streaming.log.embedded import EmbeddedLogReader
reader = EmbeddedLogReader(sys.argv[1])
next_offset, deadline = 0, time.monotonic() + 60
while next_offset < int(sys.argv[2]) and time.monotonic() < deadline:
    end = reader.end_offset()
    for record in reader.read(next_offset, end):
        print(record.offset, record.key, flush=True)
    next_offset = end
    time.sleep(0.002)
"""

WRITER = """
import sys, threading
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
writer = EmbeddedLogWriter(sys.argv[1], segment_bytes=30_000)
told = threading.Lock()
def work(thread):
    number = 0
    while True:
        new = [NewRecord("k", f"{thread}.{number}.{i}", b"x" * 50) for i in range(2)]
        offsets = writer.append(new)
        with told:
            print(offsets.start, new[0].key, new[1].key, flush=True)
        number += 1
for thread in range(6):
    threading.Thread(target=work, args=(thread,)).start()
"""

WAITER = """
import sys
from streaming.log.embedded import EmbeddedLogReader
with EmbeddedLogReader(sys.argv[1]) as reader:
    print("waits", flush=True)
    print(reader.wait_beyond(int(sys.argv[2]), 600), flush=True)
"""


def start(script, *args):
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, args)], stdout=subprocess.PIPE, text=True
    )


def test_a_reader_in_another_process_sees_what_is_appended(folder, open_writer, records):
    writer = open_writer(segment_bytes=500)
    with start(READER, folder, 40) as reader:
        try:
            for record in records(40):
                writer.append([record])
            assert reader.stdout is not None
            lines = [reader.stdout.readline().split() for _ in range(40)]
            assert lines == [[str(n), f"topic-{n}"] for n in range(40)]
            assert reader.wait(60) == 0
        finally:
            reader.kill()


def test_a_second_writing_process_is_refused_by_pid(folder):
    with start(WRITER, folder) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline()
            with pytest.raises(
                LogLocked, match=re.escape(f"{folder} is already written by process {other.pid}")
            ):
                EmbeddedLogWriter(folder)
        finally:
            other.kill()


@pytest.mark.parametrize("lines_before_kill", [1, 50, 400])
def test_every_acknowledged_record_survives_a_killed_writer(folder, lines_before_kill):
    told: dict[int, list[str]] = {}
    for _restart in range(2):
        with start(WRITER, folder) as writer:
            try:
                assert writer.stdout is not None
                for _ in range(lines_before_kill):
                    offset, *keys = writer.stdout.readline().split()
                    told[int(offset)] = keys
                os.kill(writer.pid, signal.SIGKILL)
                for line in writer.stdout:
                    if line.endswith("\n"):
                        offset, *keys = line.split()
                        told[int(offset)] = keys
            finally:
                writer.kill()
    EmbeddedLogWriter(folder).close()
    with EmbeddedLogReader(folder) as reader:
        read = list(reader.read(0, reader.end_offset()))
    assert [record.offset for record in read] == list(range(len(read)))
    assert len(told) >= 2 * lines_before_kill
    for offset, keys in told.items():
        assert [read[offset].key, read[offset + 1].key] == keys
    times = [record.time_ms for record in read]
    assert times == sorted(times)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("appended", [0, 3])
def test_who_waits_for_the_end_is_woken_from_another_process(
    folder, open_writer, records, appended
):
    writer = open_writer()
    writer.append(records(3))
    with start(WAITER, folder, writer.end_offset() - appended) as waiter:
        try:
            assert waiter.stdout is not None
            assert waiter.stdout.readline() == "waits\n"
            if not appended:
                # Asleep as likely as not: what comes in between is not missed either.
                waiter_sleeps(waiter.pid)
                writer.append(records(2))
            assert int(waiter.stdout.readline()) == writer.end_offset()
        finally:
            waiter.kill()


def waiter_sleeps(pid):
    """Wait a moment for a process to do nothing."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and psutil.Process(pid).status() != psutil.STATUS_SLEEPING:
        time.sleep(0.01)


@pytest.mark.parametrize("can_wake", [True, False])
def test_a_wait_for_the_end_is_bounded_and_woken(
    folder, open_writer, records, monkeypatch, can_wake
):
    """Also where no process can wake another."""
    if not can_wake:
        monkeypatch.setattr(futex, "can_wake", lambda: False)
    writer = open_writer()
    with EmbeddedLogReader(folder) as reader:
        assert reader.wait_beyond(0, 0.01) == 0
        appender = threading.Timer(0.05, writer.append, [records(2)])
        appender.start()
        try:
            assert reader.wait_beyond(0, 600) == 2
        finally:
            appender.join()
        assert reader.wait_beyond(7, 600) == 2
