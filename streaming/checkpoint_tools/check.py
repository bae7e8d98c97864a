"""Whether a checkpoint is whole, and whether the log still leads to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from checkpoints.damage import damage, lost_states
from checkpoints.layout import CheckpointMismatch
from checkpoints.machine_format import decode_machine, encode_machine
from checkpoints.read import committed_batches, snapshot_of
from checkpoints.replay import States
from checkpoints.snapshot import Snapshot
from state.errors import CorruptBlock
from state.partitions.slot import Slot
from state.routing import topic_scope
from streaming.folding import fold_range
from streaming.log.api import LogError, LogReader
from streaming.log.recorded import open_log
from streaming.paths import DataDir


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; passed is None when it could not be."""

    what: str
    passed: bool | None
    found: str


def verify_checkpoint(spark: SparkSession, folders: DataDir) -> list[Check]:
    """Look at a checkpoint and the event log beside it.

    Its files, every machine's bytes, that each topic is in its slot, that the log is whole and has
    what comes next; and where the log reaches back, that the oldest retained batch's machines and
    the events since give the last batch's machines, byte for byte. Raises OSError when a file
    cannot be read.
    """
    found: list[Check] = []
    try:
        found.extend(_checks(spark, folders))  # keeps those before one that cannot be made
    except CheckpointMismatch as error:
        found.append(Check("batches", False, str(error)))
    except CorruptBlock as error:
        found.append(Check("machines", False, str(error)))
    except LogError as error:
        found.append(Check("event log", False, str(error)))
    except (Py4JJavaError, PySparkException) as error:
        found.append(Check("states", False, lost_states(error) or _beginning(error)))
    return found


def _checks(spark: SparkSession, folders: DataDir) -> Iterator[Check]:
    checkpoint = folders.checkpoint
    if (broken := damage(checkpoint)) is not None:
        yield Check("files", False, broken)
        return
    yield Check("files", True, "those that Spark reads first can be read")
    committed = committed_batches(checkpoint)
    last = snapshot_of(spark, checkpoint, max(committed, default=None))
    yield Check("batches", True, f"{committed[0]} to {committed[-1]}, folded up to {last.offset}")
    machines = _machines(last)
    yield machines
    if not machines.passed:
        return
    yield _places(last)
    with closing(open_log(folders.event_log)) as reader:
        yield _whole_log(reader, last.offset)
        yield _folded_again(spark, checkpoint, reader, last)


def _beginning(error: Exception) -> str:
    """Return what an error of Spark's says before its stack traces."""
    return " ".join(str(error).splitlines()[:2])


def _machines(last: Snapshot) -> Check:
    for key, data in last.states.items():
        try:
            decode_machine(data)
        except CorruptBlock as error:
            return Check("machines", False, f"machine {key}: {error}")
    size_bytes = sum(map(len, last.states.values()))
    return Check("machines", True, f"{len(last.states)}, {size_bytes:,} bytes")


def _places(last: Snapshot) -> Check:
    count = 0
    for key, data in last.states.items():
        machine = decode_machine(data)
        if isinstance(machine, Slot):
            for topic in machine.table.topics:
                if topic_scope(topic.name) % last.layout.slots != key:
                    return Check("places", False, f"topic {topic.name} is in slot {key}")
            count += len(machine.table.topics)
    return Check("places", True, f"{count} topics in {last.layout.slots} slots")


def _whole_log(reader: LogReader, offset: int) -> Check:
    """Read every record, also those before the oldest batch; raises LogError at a damaged one."""
    start, end = reader.start_offset(), reader.end_offset()
    for _ in reader.read(start, end):
        pass
    return Check("event log", start <= offset <= end, f"has offsets {start} to {end}")


def _folded_again(
    spark: SparkSession, checkpoint: Path, reader: LogReader, last: Snapshot
) -> Check:
    what = "folded again"
    oldest = committed_batches(checkpoint)[0]
    try:
        first = snapshot_of(spark, checkpoint, oldest)
    except (CheckpointMismatch, Py4JJavaError, PySparkException):
        if oldest in committed_batches(checkpoint):
            raise
        return Check(what, None, f"the job let go of batch {oldest} meanwhile")
    if first.offset == last.offset:
        return Check(what, None, "one batch only, nothing to fold")
    if not reader.start_offset() <= first.offset <= last.offset <= reader.end_offset():
        return Check(what, None, f"the log does not have {first.offset} to {last.offset}")
    states = dict(first.states)
    events = range(first.offset, last.offset)
    for _ in fold_range(states, reader, events, last.layout):
        pass
    differing = _differing(states, last.states)
    if differing:
        return Check(what, False, f"other bytes in machines {differing}")
    return Check(what, True, f"{len(events)} events since batch {oldest} give the same bytes")


def _differing(states: Mapping[int, bytes], wanted: States) -> list[int]:
    """Return the keys of machines that are not the same, all written in the present format."""

    def present(data: bytes | None) -> bytes | None:
        return None if data is None else encode_machine(decode_machine(data))

    keys = sorted(states.keys() | wanted.keys())
    return [key for key in keys if present(states.get(key)) != present(wanted.get(key))]
