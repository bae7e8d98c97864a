"""What `helmstream verify` prints, and what it ends with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from streaming.cli import main
from streaming.dual_writes import run as dual_writes
from streaming.dual_writes.knowledge import Difference as DualDifference
from streaming.dual_writes.knowledge import Matter as DualMatter
from streaming.dual_writes.knowledge import Subject as DualSubject
from streaming.settings import Settings
from streaming.shadow.exit_codes import DIVERGED, INCOMPLETE
from streaming.verification import run
from streaming.verification.differences import Difference, Matter, Subject
from streaming.verification.looks import Asked, Found

ISR = Difference(Subject(2, Matter.ISR, "t", 0), [1, 2], [1])
STRAY = Difference(Subject(2, Matter.STRAY_REPLICA, "[t]", 3), None, "/data")
AGREED = Asked(1, 2, 9, 4)
DIFFERS = Asked(2, 2, 9, 5, [ISR, STRAY])
OLD = Asked(3, gaps=["too old"])

Verify = Callable[..., tuple[int, str]]


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Verify:
    """Run the command on what was found; return its exit code and what it printed."""

    def verify(asked: list[Asked], *options: str) -> tuple[int, str]:
        found = Found({one.broker: one for one in asked})
        found.confirmed = {one.broker: list(one.differences) for one in asked}
        given: list[tuple[str, float]] = []

        def verified(settings: Settings, settle_s: float) -> Found:
            given.append((settings.zookeeper_connect, settle_s))
            return found

        monkeypatch.setattr(run, "run_verification", verified)
        with pytest.raises(SystemExit) as ended:
            main(["verify", "--zookeeper", "zk:2181", "--settle", "3", *options])
        assert given == [("zk:2181", 3.0)]
        return int(ended.value.code or 0), capsys.readouterr().out

    return verify


@pytest.mark.parametrize("as_json", [False, True])
def test_a_quorum_is_compared_by_its_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    rate = DualDifference(DualSubject(DualMatter.CONFIG, "users/[a]"), "rate", 1.0, None)
    renewers = DualDifference(DualSubject(DualMatter.DELEGATION_TOKEN, "x"), "by", ("a", "b"), None)
    found = dual_writes.Found(42, 2, 9, 4, [rate, renewers], ["/unread"])
    given: list[tuple[str, Path, float]] = []

    def compared(settings: Settings, folder: Path, settle_s: float) -> dual_writes.Found:
        given.append((settings.zookeeper_connect, folder, settle_s))
        return found

    monkeypatch.setattr(dual_writes, "compare", compared)
    options = ["--json"] if as_json else ["--limit", "1"]
    with pytest.raises(SystemExit) as ended:
        main(["verify", "--zookeeper", "zk:2181", "--metadata-log", "/kraft", *options])
    assert given == [("zk:2181", Path("/kraft"), 10.0)]
    assert ended.value.code == DIVERGED
    lines = capsys.readouterr().out.splitlines()
    if as_json:
        first, second, summary = map(orjson.loads, lines)
        assert first == {
            "matter": "config",
            "name": "users/[a]",
            "what": "rate",
            "zookeeper": 1.0,
            "quorum_has": None,
        }
        assert second["zookeeper"] == ["a", "b"]
        counts = {"offset": 42, "topics": 2, "partitions": 9, "others": 4, "differences": 2}
        assert summary["summary"] == {"quorum": [counts], "differences": 2, "gaps": ["/unread"]}
        return
    assert lines[0].split() == ["offset", "topics", "partitions", "others", "differences"]
    assert lines[1].split() == ["42", "2", "9", "4", "2"]
    assert lines[3].split() == ["matter", "name", "what", "zookeeper", "quorum_has"]
    assert lines[4].split() == ["config", "users/[a]", "rate", "1.0", "-"]
    assert lines[5:] == ["and 1 more (--limit 0)", "not compared: /unread"]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ([AGREED], 0),
        ([AGREED, DIFFERS], DIVERGED),
        ([AGREED, OLD], INCOMPLETE),
        ([DIFFERS, OLD], DIVERGED),
    ],
)
def test_the_exit_code_says_what_was_found(verify: Verify, asked: list[Asked], code: int) -> None:
    assert verify(asked)[0] == code


def test_tables_for_people(verify: Verify) -> None:
    _, printed = verify([AGREED, DIFFERS, OLD])
    assert [line.split() for line in printed.splitlines()] == [
        ["broker", "topics", "partitions", "replicas", "differences"],
        ["1", "2", "9", "4", "0"],
        ["2", "2", "9", "5", "2"],
        ["3", "0", "0", "0", "0"],
        [],
        ["broker", "matter", "topic", "partition", "zookeeper", "broker_has"],
        ["2", "isr", "t", "0", "[1,", "2]", "[1]"],
        ["2", "stray_replica", "[t]", "3", "-", "/data"],
        ["not", "compared:", "broker", "3:", "too", "old"],
    ]


def test_no_more_differences_than_are_wanted(verify: Verify) -> None:
    assert "and 1 more (--limit 0)" in verify([DIFFERS], "--limit", "1")[1]
    assert "more" not in verify([DIFFERS], "--limit", "0")[1]


def test_json_lines_for_programs(verify: Verify) -> None:
    first, second, last = map(orjson.loads, verify([DIFFERS, OLD], "--json")[1].splitlines())
    values = {"zookeeper": [1, 2], "broker_has": [1]}
    assert first == {"broker": 2, "matter": "isr", "topic": "t", "partition": 0} | values
    assert second["zookeeper"] is None
    counts = {"topics": 2, "partitions": 9, "replicas": 5, "differences": 2}
    assert last["summary"]["brokers"][0] == {"broker": 2} | counts
    assert last["summary"]["gaps"] == ["broker 3: too old"]
    assert last["summary"]["differences"] == 2


def test_a_cluster_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["verify"])
    assert ended.value.code == 2
    assert "no cluster is named" in capsys.readouterr().err
