"""What `helmstream state` shows of machines."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa
import pytest
from rich.console import Console

from checkpoints.group_table import group_table
from checkpoints.machine_format import decode_machine
from checkpoints.tables import partition_table
from state.events import Event
from streaming.cli import main
from streaming.commands.spark import LazySpark
from streaming.commands.state import _show, about, changed_rows, summary_of
from streaming.errors import ConfigurationError
from tests.fixtures.folding import fold_log
from tests.logs import group_intents
from tests.logs.state_logs import long_log

SLOTS = 4
COUNTS = ("partitions", "offline", "under_replicated", "reassigning")


def machines_of(log: list[Event]):
    return {key: decode_machine(data) for key, data in fold_log(log, SLOTS)[0].items()}


@pytest.fixture(scope="module")
def log() -> list[Event]:
    return long_log(11, plausible=True)


def named(machines):
    rows = partition_table(machines).to_pylist()
    return {f"{row['topic']}-{row['partition']}": row for row in rows}


@pytest.mark.parametrize("seed", [3, 5, 11])
def test_topics_are_counted_as_their_partitions_say(seed):
    for end in (0, 20, 55):
        machines = machines_of(long_log(seed, plausible=True)[:end])
        wanted: dict[str, dict[str, Any]] = {}
        for row in partition_table(machines).to_pylist():
            about_it = {"topic": row["topic"], "slot": row["slot"]}
            topic = wanted.setdefault(row["topic"], about_it | dict.fromkeys(COUNTS, 0))
            topic["partitions"] += 1
            topic["offline"] += row["state"] == "offline"
            topic["under_replicated"] += len(row["isr"]) < len(row["replicas"])
            topic["reassigning"] += bool(row["adding"] or row["removing"])
            topic["deleting"] = row["deleting"]
        found = summary_of(machines)["topics"]
        assert [list(one.items()) for one in found] == [
            list(wanted[topic].items()) for topic in sorted(wanted)
        ]


def test_only_the_topic_that_is_asked_for_is_opened(log, monkeypatch):
    machines = machines_of(log)
    table = partition_table(machines)
    topic = table["topic"][0].as_py()
    wanted = [row for row in table.to_pylist() if row["topic"] == topic]
    assert 0 < len(wanted) < len(table)
    opened = []
    to_pylist = pa.Table.to_pylist

    class Counting:
        """A partition table that counts the rows that are made of it."""

        def __init__(self, table):
            self._table = table

        def __getitem__(self, name):
            return self._table[name]

        def filter(self, mask):
            return Counting(self._table.filter(mask))

        def to_pylist(self):
            opened.append(len(self._table))
            return to_pylist(self._table)

    monkeypatch.setattr("checkpoints.tables.partition_table", lambda _: Counting(table))
    assert about(machines, topic) == {f"topic {topic}": wanted}
    assert opened == [len(wanted)]


def test_what_nobody_has_is_refused(log):
    with pytest.raises(ConfigurationError, match="no machine has a topic or a group 'nothing'"):
        about(machines_of(log), "nothing")


def test_each_field_that_changed_is_a_row_by_name(log):
    before, after = machines_of(log[:20]), machines_of(log)
    one, other = named(before), named(after)
    wanted = []
    for name in sorted(one.keys() | other.keys()):
        if name not in one or name not in other:
            wanted.append((name, "all", one.get(name), other.get(name)))
        else:
            fields = [field for field in one[name] if one[name][field] != other[name][field]]
            wanted += [(name, field, one[name][field], other[name][field]) for field in fields]
    assert [tuple(row.values()) for row in changed_rows(before, after)] == wanted != []
    assert changed_rows(after, after) == []


def test_a_group_that_came_is_a_change():
    after = machines_of(group_intents.long_log(3).events)
    changes = changed_rows({}, after)
    names = [f"group {row['group']}" for row in summary_of(after)["groups"]]
    assert [row["what"] for row in changes if row["what"].startswith("group ")] == names != []
    assert all(row["before"] is None and row["field"] == "all" for row in changes)


def test_groups_are_counted_and_one_is_opened_by_its_name():
    machines = machines_of(group_intents.long_log(3).events)
    whole = group_table(machines)
    assert summary_of(machines)["groups"] == [
        row | {name: len(row[name]) for name in ("members", "offsets")} for row in whole
    ]
    for row in whole:
        shown = about(machines, row["group"])
        assert list(shown) == [f"group {row['group']}", "members", "offsets"]
        assert (shown["members"], shown["offsets"]) == (row["members"], row["offsets"])


def with_batches(folder, committed):
    commits = folder / "checkpoint" / "commits"
    commits.mkdir(parents=True)
    for number in committed:
        (commits / str(number)).touch()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["state", "--batch", "8"], "batch 8 is not in"),
        (["state", "t", "--batch", "11"], "it has 9 to 10"),
        (["state", "diff", "1", "9"], "batch 1 is not in"),
        (["state", "diff", "9", "11"], "batch 11 is not in"),
        (["state", "diff", "9", "10", "--batch", "9"], "--batch 9: not with diff"),
        (["state", "diff", "9", "x"], "state diff 'x': allowed are numbers of batches"),
        (["checkpoint", "export", "to", "--batch", "8"], "batch 8 is not in"),
    ],
)
def test_a_batch_that_is_not_there_is_told_before_spark_starts(
    tmp_path, monkeypatch, capsys, arguments, said
):
    def start(_):
        pytest.fail("Spark was started")

    monkeypatch.setattr(LazySpark, "__call__", start)
    with_batches(tmp_path, [9, 10])
    with pytest.raises(SystemExit) as left:
        main([*arguments, "--data-dir", str(tmp_path)])
    assert left.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("after", [9, 10])
def test_a_diff_is_of_both_batches(log, tmp_path, monkeypatch, capsys, after):
    ends = {9: 20, 10: len(log)}
    with_batches(tmp_path, ends)
    monkeypatch.setattr(LazySpark, "__call__", lambda _: None)
    monkeypatch.setattr(
        "checkpoints.read.read_machines", lambda _, __, batch: machines_of(log[: ends[batch]])
    )
    with pytest.raises(SystemExit) as left:
        main(["state", "diff", "9", str(after), "--json", "--data-dir", str(tmp_path)])
    changes = changed_rows(machines_of(log[:20]), machines_of(log[: ends[after]]))
    assert (left.value.code or 0, bool(changes)) == (int(after == 10), after == 10)
    assert [orjson.loads(line) for line in capsys.readouterr().out.splitlines()] == changes


PARTITIONS = [
    {
        "topic": "a-topic-with-a-name",
        **{"partition": number, "topic_id": "xVg7K6qyTvmxpuD7RnqU_w", "slot": 3},
        **{"state": "online", "leader": 1, "leader_epoch": 7, "isr": [1, 2], "replicas": [1, 2, 3]},
        **{"adding": [], "removing": [], "replica_states": ["online", "online", "offline"]},
    }
    for number in range(2)
]


def shown(rows, width: int) -> list[str]:
    console = Console(width=width, highlight=False)
    with console.capture() as printed:
        _show(console, rows, "topic t", as_json=False)
    return [line.rstrip() for line in printed.get().splitlines()]


def test_a_narrow_terminal_shows_the_columns_that_matter_whole():
    assert shown(PARTITIONS, 80) == [
        "topic t (all columns: --json, or a pipe)",
        " partition  state   leader  leader_epoch  isr    replicas",
        " 0          online  1       7             [1,2]  [1,2,3]",
        " 1          online  1       7             [1,2]  [1,2,3]",
    ]


def test_a_wide_one_shows_all_of_them():
    title, names, *rows = shown(PARTITIONS, 200)
    assert (title, names.split()) == ("topic t", list(PARTITIONS[0]))
    assert len(rows) == 2


def test_what_has_no_fewer_columns_is_folded():
    lines = shown([{"what": "t-0", "before": "x" * 100}], 40)
    assert "".join(lines).count("x") == 100
