"""Which failures `make test` tries again: what a slow machine does, and never what was lost."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from streaming.demo.producer import Acked
from streaming.demo.verdict import Verdict
from streaming.zk.errors import ConnectionLost
from tests.differential.compare import Difference
from tests.differential.outcome import Outcome as Compared
from tests.e2e import group_clients, group_stage
from tests.e2e.random_operations import Outcome
from tests.e2e.telling import check_nothing_lost
from tests.e2e.test_random_operations import judge

ACKED = Acked(0, 7, b"seven")
WELL = Verdict(10, [], 0)
ALL_DONE = Counter({"create topic: done": 1, "reassign: done": 1})


@pytest.fixture
def never_again(root: Path) -> re.Pattern[str]:
    (found,) = re.findall(r"--rerun-except '([^']+)'", (root / "Makefile").read_text())
    return re.compile(found)


def tried_again(error: BaseException, never_again: re.Pattern[str]) -> bool:
    """Whether pytest-rerunfailures would, which looks for the expression in this."""
    return not never_again.search(f"{type(error).__name__}: {error}")


def random_outcome(verdict: Verdict = WELL, misread: int = 0, **more: Any) -> Outcome:
    fields = {"wrong": [], "kept": [], "results": ALL_DONE, **more}
    return Outcome(7, verdict, 1, 10, misread, [], **fields)


@dataclass(frozen=True, slots=True)
class Demo:
    """A cluster whose traffic came to this."""

    came_to: Verdict

    def stop_traffic(self) -> None: ...

    def verdict(self) -> Verdict:
        return self.came_to


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group whose commits were acked up to these offsets."""

    acked: dict[int, int]
    group: str = "g"
    error: None = None


@pytest.mark.parametrize(
    "error",
    [
        ConnectionLost("/brokers/ids"),
        KafkaException(KafkaError(KafkaError._ASSIGNMENT_LOST)),
        AssertionError("a lost job did not come; last found: False"),
        AssertionError("the returned follower (1, [1, 3]) did not come; last found: False"),
        AssertionError(f"{WELL}"),
    ],
    ids=repr,
)
def test_a_slow_machine_gets_a_second_try(error: Exception, never_again: re.Pattern[str]) -> None:
    assert tried_again(error, never_again)


@pytest.mark.parametrize("verdict", [Verdict(10, [ACKED], 0), Verdict(10, [], 1)])
def test_records_that_are_lost_or_there_twice_fail_at_once(
    verdict: Verdict, never_again: re.Pattern[str]
) -> None:
    with pytest.raises(AssertionError) as failed:
        check_nothing_lost(Demo(verdict))
    assert not tried_again(failed.value, never_again)


@pytest.mark.parametrize(
    "outcome", [random_outcome(Verdict(10, [ACKED], 0)), random_outcome(WELL, 1)]
)
def test_random_operations_that_lose_records_fail_at_once(
    outcome: Outcome, never_again: re.Pattern[str]
) -> None:
    with pytest.raises(AssertionError) as failed:
        judge(outcome, ["create topic: done in 0.1 s"])
    assert not tried_again(failed.value, never_again)


@pytest.mark.parametrize(
    "outcome",
    [
        random_outcome(wrong=["not in control after 240 s"]),
        random_outcome(Verdict(10, [], 2), results=Counter({"create topic: done": 1})),
    ],
)
def test_random_operations_that_go_wrong_get_a_second_try(
    outcome: Outcome, never_again: re.Pattern[str]
) -> None:
    with pytest.raises(AssertionError) as failed:
        judge(outcome, ["reassign: no answer (RequestTimedOutError) in 15.0 s"])
    assert tried_again(failed.value, never_again)


@pytest.mark.parametrize("moved", ["reassign", "reassign by znode"])
def test_random_operations_in_which_something_was_done_go_well(moved: str) -> None:
    judge(random_outcome(results=Counter({"create topic: done": 1, f"{moved}: done": 1})), [])


def test_commits_that_are_lost_fail_at_once(
    monkeypatch: pytest.MonkeyPatch, never_again: re.Pattern[str]
) -> None:
    monkeypatch.setattr(group_stage, "committed", lambda *_: {0: 4})
    with pytest.raises(AssertionError) as failed:
        group_stage.nothing_lost([], [cast(group_clients.Member, Member({0: 5}))])
    assert not tried_again(failed.value, never_again)


def test_controllers_that_do_not_do_the_same_fail_at_once(never_again: re.Pattern[str]) -> None:
    found = Compared(7, differences=[Difference("/brokers/topics/t", b"{}", None)])
    assert not tried_again(AssertionError(found.report()), never_again)


@pytest.mark.parametrize(
    "said",
    [
        "DIFFERENT\nassert ([{'status': 'differed'}], 1) == ([], 0)",
        "one digest of the decisions, in the stream too did not come; last found: False",
        "assert '3f' == '4a'\n  + where '3f' = digest_of(PosixPath('/decisions'))",
    ],
)
def test_decisions_that_differ_fail_at_once(said: str, never_again: re.Pattern[str]) -> None:
    assert not tried_again(AssertionError(said), never_again)
