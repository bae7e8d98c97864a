"""What `helmstream verify` prints, and what it ends with."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest

from streaming.cli import main
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
