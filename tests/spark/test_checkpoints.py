"""Checkpoints of the job's own query: looked at, checked, moved to other slots, made anew."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from checkpoints.ahead import Ahead, note_ahead, read_ahead
from checkpoints.group_table import group_table, read_groups
from checkpoints.layout import check_layout
from checkpoints.machine_format import decode_machine
from checkpoints.read import committed_batches, folded_until, snapshot_of
from checkpoints.snapshot import read_snapshot
from checkpoints.tables import partition_table, read_partitions
from state.events import Event
from state.merge import MergedDecision
from state.routing import GROUP_KEY, GROUP_SLOTS, Layout
from streaming.cli import main
from streaming.commands.spark import LazySpark
from streaming.decided_rows import folded_batch
from streaming.job import start_query
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.writer_lock import WriterLock
from streaming.paths import DataDir
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from tests.fixtures.folding import fold_log
from tests.fixtures.frozen import EVENTS, SLOTS, unpack_frozen_data
from tests.logs.group_intents import authored, random_intents
from tests.logs.state_logs import long_log

CUT = 40
BATCH = 15
ONE_TASK = ("--set", "slots=4", "--set", "shuffle.partitions=1")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from streaming.spark.session import open_spark

    session = open_spark(load_settings((), ["shuffle.partitions=1"], {}))
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _shared_session(spark, monkeypatch):
    """Commands use the tests' session and leave it open."""
    monkeypatch.setattr(LazySpark, "__call__", lambda _: spark)


@pytest.fixture(scope="module")
def log() -> list[Event]:
    return long_log(11, plausible=True)


def settings_of(folder: Path, slots: int, partitions: int) -> Settings:
    given = {
        "data.dir": folder,
        "slots": slots,
        "shuffle.partitions": partitions,
        "event.log.batch.max.events": BATCH,
    }
    return load_settings((), [f"{key}={value}" for key, value in given.items()], {})


def append(folder: Path, events: list[Event]) -> None:
    with EmbeddedLogWriter(DataDir(folder).events) as writer:
        writer.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in events])


def decided(spark: Any, folder: Path, slots: int, partitions: int) -> list[MergedDecision]:
    """Run the job's query until it has folded all there is; return what it decides."""
    found: list[MergedDecision] = []

    def process(batch_id: int, rows: Any) -> None:
        if (folded := folded_batch(rows)) is not None:
            found.extend(folded.decisions)

    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    query = start_query(spark, settings_of(folder, slots, partitions), DataDir(folder), process)
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return found


@pytest.fixture(scope="module")
def original(spark, log, tmp_path_factory) -> Path:
    """A data folder that has folded the first events, in 4 slots."""
    folder = tmp_path_factory.mktemp("original")
    append(folder, log[:CUT])
    check_layout(DataDir(folder).checkpoint, Layout(4, GROUP_SLOTS), 1)
    decided(spark, folder, 4, 1)
    return folder


@pytest.fixture
def folder(original, tmp_path) -> Path:
    shutil.copytree(original, tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def command(folder, capsys):
    def command(*arguments: object, code: int = 0) -> str:
        with pytest.raises(SystemExit) as left:
            main([*map(str, arguments), "--data-dir", str(folder)])
        printed = capsys.readouterr()
        assert int(left.value.code or 0) == code, printed.err
        return printed.out + printed.err if code else printed.out

    return command


def rest_of(log: list[Event]) -> list[MergedDecision]:
    return [one for one in fold_log(log, 1)[1] if one.offset >= CUT]


def table_of(log: list[Event], slots: int) -> list[dict[str, Any]]:
    states, _ = fold_log(log, slots)
    machines = {key: decode_machine(data) for key, data in states.items()}
    return partition_table(machines).to_pylist()


def test_partitions_are_a_table_as_of_any_batch(spark, original, log):
    checkpoint = DataDir(original).checkpoint
    rows = read_partitions(spark, checkpoint).orderBy("topic", "partition").collect()
    assert [row.asDict() for row in rows] == table_of(log[:CUT], 4) != []
    earlier = read_partitions(spark, checkpoint, batch_id=0).orderBy("topic", "partition")
    assert [row.asDict() for row in earlier.collect()] == table_of(log[:BATCH], 4)
    assert dict(earlier.dtypes)["isr"] == "array<int>"


def test_the_state_is_shown_whole_by_topic_and_by_batch(command, log):
    wanted = table_of(log[:CUT], 4)
    topic = wanted[0]["topic"]
    shown = [orjson.loads(line) for line in command("state", topic, "--json").splitlines()]
    assert shown == [row for row in wanted if row["topic"] == topic]
    summary = [orjson.loads(line) for line in command("state", "--json").splitlines()]
    topics = {row["topic"]: row["partitions"] for row in summary if "topic" in row}
    assert topics[topic] == len(shown)
    assert {row["broker"] for row in summary if "broker" in row}
    assert topic in command("state")
    assert "it has 0 to 2" in command("state", "--batch", 99, code=2)
    assert "no machine has a topic or a group 'nobody'" in command("state", "nobody", code=2)


def test_two_batches_are_compared(command, log):
    before, after = table_of(log[:BATCH], 4), table_of(log[:CUT], 4)
    lines = command("state", "diff", 0, 2, "--json", code=1).splitlines()
    changes = [orjson.loads(line) for line in lines]
    places = {f"{row['topic']}-{row['partition']}" for row in after if row not in before}
    gone = {f"{row['topic']}-{row['partition']}" for row in before if row not in after}
    assert {change["what"] for change in changes} == places | gone != set()
    assert command("state", "diff", 1, 1) == "batch 1 to 1: nothing\n"


def test_groups_are_a_table_and_are_shown(spark, command, folder):
    """A history of consumer groups, folded by the same query."""
    history = authored(random_intents(3, 60)).events
    shutil.rmtree(folder / "events")
    shutil.rmtree(folder / "checkpoint")
    append(folder, history)
    check_layout(DataDir(folder).checkpoint, Layout(1, GROUP_SLOTS), 1)
    found = decided(spark, folder, 1, 1)
    states, wanted = fold_log(history, 1)
    assert found == wanted
    groups = group_table({key: decode_machine(data) for key, data in states.items()})
    assert any(group["members"] for group in groups)
    assert any(group["offsets"] for group in groups)
    rows = read_groups(spark, DataDir(folder).checkpoint).orderBy("group").collect()
    assert [row.asDict(recursive=True) for row in rows] == groups
    shown = [orjson.loads(line) for line in command("state", "g", "--json").splitlines()]
    assert shown[0]["group"] == "g"
    assert " ok " in command("checkpoint", "verify")
    shape = ["--set", "slots=3", "--set", "shuffle.partitions=1", "--set", "group.slots=5"]
    command("checkpoint", "reslot", *shape)
    later = read_groups(spark, DataDir(folder).checkpoint).orderBy("group").collect()
    assert [row.asDict() | {"slot": 0} for row in later] == [
        row.asDict() | {"slot": 0} for row in rows
    ]
    assert {row["slot"] - GROUP_KEY for row in later} <= set(range(5))


def test_a_whole_checkpoint_is_found_whole(command):
    said = command("checkpoint", "verify")
    assert said.count(" ok ") == 6, said
    assert f"{CUT - BATCH} events since batch 0 give the same bytes" in said


@pytest.mark.parametrize(
    ("damaged", "found"),
    [
        ("offsets/2", "offsets/2 cannot be read"),
        ("commits/2", "commits/2 cannot be read"),
        ("helmstream.json", "helmstream.json cannot be read"),
        ("state/0/0/3.delta", "CANNOT_LOAD_STATE_STORE"),
    ],
)
def test_what_a_loss_of_power_cut_is_found(command, folder, damaged, found):
    path = folder / "checkpoint" / damaged
    path.write_bytes(b"")
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    said = command("checkpoint", "verify", code=1)
    assert " wrong " in said and found in said


def test_a_log_that_leads_elsewhere_is_found(command, folder, log):
    """Somebody changed an event that was folded."""
    shutil.rmtree(folder / "events")
    lost = [Event(e.offset, e.time_ms, "unknown", e.key, e.payload) for e in log[BATCH:CUT]]
    append(folder, [*log[:BATCH], *lost])
    assert "other bytes in machines" in command("checkpoint", "verify", code=1)


def test_a_missing_log_or_checkpoint_is_found(command, folder):
    shutil.rmtree(folder / "events")
    assert "holds no log" in command("checkpoint", "verify", code=1)
    shutil.rmtree(folder / "checkpoint")
    assert "there is no checkpoint" in command("state", code=2)


@pytest.mark.parametrize("layout", [(16, 2), (1, 1)], ids=str)
def test_a_query_goes_on_in_other_slots_and_partitions(spark, command, folder, log, layout):
    slots, partitions = layout
    shape = ["--set", f"slots={slots}", "--set", f"shuffle.partitions={partitions}"]
    assert f"goes on from offset {CUT}" in command("checkpoint", "reslot", *shape)
    append(folder, log[CUT:])
    assert decided(spark, folder, slots, partitions) == rest_of(log)
    assert "other bytes" not in command("checkpoint", "verify")
    again = command("checkpoint", "reslot", *shape, code=2)
    assert "checkpoint.before is left from the last replacement" in again


def test_a_checkpoint_is_exported_and_imported(spark, command, folder, log, tmp_path):
    out = tmp_path / "exported"
    command("checkpoint", "export", out)
    assert pq.read_table(out / "partitions.parquet").to_pylist() == table_of(log[:CUT], 4)
    shutil.rmtree(folder / "checkpoint")
    shape = ["--set", "slots=2", "--set", "shuffle.partitions=1"]
    command("checkpoint", "import", out, *shape)
    append(folder, log[CUT:])
    assert decided(spark, folder, 2, 1) == rest_of(log)


def test_a_checkpoint_is_rebuilt_from_the_log(spark, command, folder, log):
    shutil.rmtree(folder / "checkpoint")
    append(folder, log[CUT:])
    command("checkpoint", "rebuild", "--set", "slots=4", "--set", "shuffle.partitions=1")
    checkpoint = DataDir(folder).checkpoint
    assert (folded_until(checkpoint), committed_batches(checkpoint)) == (len(log), [0])
    assert decided(spark, folder, 4, 1) == []
    shown = [orjson.loads(line) for line in command("state", "--json").splitlines()]
    wanted = {row["topic"] for row in table_of(log, 4)}
    assert {row["topic"] for row in shown if "topic" in row} == wanted


def test_a_new_checkpoint_knows_what_was_carried_out_ahead_of_the_old_one(command, folder, log):
    """Else the job would carry it out again."""
    append(folder, log[CUT:])
    ahead = Ahead(None, CUT + 2, CUT + 5)
    note_ahead(folder / "checkpoint", ahead)
    command("checkpoint", "reslot", "--set", "slots=2", "--set", "shuffle.partitions=1")
    assert read_ahead(folder / "checkpoint") == ahead


def test_an_older_export_knows_what_was_carried_out_since(spark, command, folder, log, tmp_path):
    """Else the job would carry it out again, under the term that the front keeps."""
    command("checkpoint", "export", tmp_path / "exported")
    append(folder, log[CUT:])
    decided(spark, folder, 4, 1)
    command("checkpoint", "import", tmp_path / "exported", *ONE_TASK)
    assert folded_until(folder / "checkpoint") == CUT
    assert read_ahead(folder / "checkpoint") == Ahead(None, len(log), len(log))


def test_a_new_checkpoint_ends_the_batch_that_was_begun_where_the_old_one_would(
    command, folder, log
):
    append(folder, log[CUT:])
    begun(folder / "checkpoint", CUT + 7)
    command("checkpoint", "reslot", "--set", "slots=2", "--set", "shuffle.partitions=1")
    assert read_ahead(folder / "checkpoint") == Ahead(None, CUT, CUT + 7)


def begun(checkpoint: Path, end: int) -> None:
    """Plan one more batch, as a job does that is killed before it commits it."""
    last = max(committed_batches(checkpoint))
    *before, _ = (checkpoint / "offsets" / str(last)).read_bytes().splitlines()
    plan = b"\n".join([*before, orjson.dumps({"offset": end})])
    (checkpoint / "offsets" / str(last + 1)).write_bytes(plan)


def test_without_a_checkpoint_nothing_is_imported_beside_a_front(command, folder, tmp_path):
    command("checkpoint", "export", tmp_path / "exported")
    shutil.rmtree(folder / "checkpoint")
    with WriterLock(folder / "events"):
        said = command("checkpoint", "import", tmp_path / "exported", *ONE_TASK, code=1)
    assert "the front has to be stopped too" in said
    assert not (folder / "checkpoint").exists()


def test_what_a_replacement_that_was_cut_off_left_is_put_right(command, folder):
    """It leaves an unfinished checkpoint, at worst beside the old one under its other name."""
    (folder / "checkpoint.new" / "offsets").mkdir(parents=True)
    (folder / "checkpoint").rename(folder / "checkpoint.before")
    said = command("checkpoint", "import", folder / "checkpoint.before", code=2)
    assert f"if that was cut off, rename it to {folder / 'checkpoint'}" in said
    (folder / "checkpoint.before").rename(folder / "checkpoint")
    command("checkpoint", "reslot", "--set", "slots=2", "--set", "shuffle.partitions=1")
    names = sorted(one.name for one in folder.glob("checkpoint*"))
    assert names == ["checkpoint", "checkpoint.before"]
    (made := folder / "as any other").mkdir()
    assert (folder / "checkpoint").stat().st_mode == made.stat().st_mode


def test_a_log_without_its_beginning_is_not_rebuilt_from(command, folder, log):
    shutil.rmtree(folder / "events")
    with EmbeddedLogWriter(folder / "events", first_offset=7) as writer:
        writer.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in log[7:]])
    assert "starts at 7, its beginning is gone" in command("checkpoint", "rebuild", code=2)


def test_nothing_is_replaced_while_a_job_runs(command, folder):
    with EmbeddedLogWriter(folder / "decisions"):
        command("checkpoint", "reslot", "--set", "slots=2", code=1)
    assert not (folder / "checkpoint.before").exists()


def test_machines_that_the_log_does_not_reach_are_refused(command, folder, log, tmp_path):
    command("checkpoint", "export", tmp_path / "exported")
    shutil.rmtree(folder / "events")
    append(folder, log[: CUT - 1])
    said = command("checkpoint", "import", tmp_path / "exported", code=2)
    assert f"folded up to {CUT}, the log" in said
    assert [one.name for one in folder.glob("checkpoint*")] == ["checkpoint"]


def test_a_frozen_checkpoint_is_read_and_gone_on_from(spark, log, tmp_path):
    """One that an earlier version made is as good as one of today."""
    data = unpack_frozen_data(tmp_path)
    checkpoint = DataDir(data).checkpoint
    frozen = read_snapshot(data / "machines.parquet")
    assert snapshot_of(spark, checkpoint) == frozen
    later = Event(EVENTS, 1_700_000_000_000, "controller_resigned", "", b'{"reason":"the end"}')
    append(data, [later])
    check_layout(checkpoint, Layout(SLOTS, frozen.layout.group_slots), 1)
    assert decided(spark, data, SLOTS, 1) == []
    assert snapshot_of(spark, checkpoint).offset == EVENTS + 1
