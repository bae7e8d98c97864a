"""What is written down, and what is shown."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.shadow.report import Report
from streaming.shadow.screen import panel, sentence
from streaming.shadow.verdicts import Difference, Status, Verdict
from tests.unit.shadow.support import Beside

AGREED = Verdict(Status.AGREED, "offline_partition_elected", "t", 0, 1, {"leader": 1}, {})
MISSED = Verdict(Status.MISSED, "offline_partition_elected", "t", 0, 1, {"leader": 1}, None)
EXPLAINED = Verdict(
    Status.EXPLAINED, "delete_topic", "t", None, 7, None, "gone", Difference.SEVERAL_CHANGES
)


@pytest.fixture
def events(tmp_path: Path) -> Iterator[EmbeddedLogReader]:
    with EmbeddedLogWriter(tmp_path / "events") as writer:
        writer.append([NewRecord("a", "", b"{}"), NewRecord("b", "t", b"{}")])
    with EmbeddedLogReader(tmp_path / "events") as reader:
        yield reader


@pytest.mark.parametrize("all_of_them", [False, True])
def test_the_report_names_the_input_of_each_verdict_and_ends_with_sums(
    tmp_path: Path, events: EmbeddedLogReader, all_of_them: bool
) -> None:
    report = Report(tmp_path / "x" / "report.jsonl", events, all_of_them=all_of_them)
    for verdict in (AGREED, MISSED, EXPLAINED):
        report.add(verdict, 5)
    assert report.close(events=3)["divergences"] == 1
    lines = [orjson.loads(line) for line in report.path.read_bytes().splitlines()]
    assert [line.get("status") for line in lines] == [
        *(["agreed"] if all_of_them else []),
        "missed",
        "explained",
        None,
    ]
    missed, explained, last = lines[-3:]
    assert missed["input"] == {"offset": 1, "kind": "b", "key": "t"}
    assert explained["input"] == {"offset": 7}, "the event log does not have it"
    assert (last["summary"]["events"], last["summary"]["agreed"]) == (3, 1)


def test_the_screen_shows_the_last_differences_and_the_epoch(
    tmp_path: Path, events: EmbeddedLogReader
) -> None:
    report = Report(tmp_path / "report.jsonl", events, all_of_them=False)
    for verdict in (AGREED, MISSED, EXPLAINED):
        report.add(verdict, 5)
    shown = io.StringIO()
    Console(file=shown, width=200).print(panel(Beside().shadow, report))
    report.close()
    assert "missed t-0 offline_partition_elected" in shown.getvalue()
    assert "explained t delete_topic" in shown.getvalue()
    assert "controller epoch     5" in shown.getvalue()


def test_a_long_value_is_cut() -> None:
    long = Verdict(Status.EXTRA, "x", "t", 0, None, None, {"isr": list(range(500))})
    assert len(sentence(long).plain) < 300
