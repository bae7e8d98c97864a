"""What a shadow does when it is to stop, and what it says of what it has not compared."""

from __future__ import annotations

import io
import signal
import threading
from pathlib import Path

import pytest
from rich.console import Console

from streaming.log.api import NewRecord
from streaming.settings_loader import load_settings
from streaming.shadow import run
from streaming.shadow.exit_codes import DIVERGED, INCOMPLETE, exit_code
from streaming.shadow.looks import Look
from streaming.shadow.run import (
    Options,
    Stop,
    follow_to_the_end,
    run_shadow,
)
from streaming.shadow.shadow import awaited, gaps
from streaming.shadow.verdicts import Status
from streaming.zk.errors import RequestFailed, ZkErrorCode
from tests.e2e.waiting import wait_for
from tests.unit.shadow.support import (
    Beside,
    state,
    unloaded,
    unstarted,
    watching,
)

NO_AUTH = RequestFailed(ZkErrorCode.NO_AUTH, "/controller")


def stopped() -> Stop:
    stop = Stop()
    stop.on_signal()
    return stop


@pytest.mark.usefixtures("handlers_kept")
def test_a_hangup_is_a_wish_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def watch(*given: object) -> int:
        signal.raise_signal(signal.SIGHUP)
        stop = given[-1]
        assert isinstance(stop, Stop)
        return int(stop.wished.is_set())

    monkeypatch.setattr(run, "check_zookeeper", lambda *_: None)
    monkeypatch.setattr(run, "log_to_file", lambda _: None)
    monkeypatch.setattr(run, "_watch", watch)
    settings = load_settings(overrides=[f"data.dir={tmp_path}"], environment={})
    options = Options(local=True, duration_s=None, report=None, all_of_them=False)
    assert run_shadow(settings, options, Console(file=io.StringIO())) == 1


def open_match() -> Beside:
    """Our machine elects another leader; the live controller has done nothing yet."""
    beside = Beside()
    beside.look(beside.brokers(unregistered=[1]))
    assert (beside.statuses(), beside.shadow.comparison.unsettled) == ([], 1)
    return beside


def test_what_waits_for_a_match_at_the_end_is_ruled_about() -> None:
    """By the clock of the real loop the window is long over."""
    beside = open_match()
    follow_to_the_end(beside.shadow, unstarted(), stopped(), None, lambda: None)
    assert beside.statuses() == [(Status.MISSED, "offline_partition_elected")]
    assert gaps(beside.shadow, unstarted()) == []


def test_a_match_that_comes_after_the_time_is_over_is_taken() -> None:
    beside = open_match()
    watcher = unstarted()
    live = Look(beside.now_ms, states={("t", 0): state(2, [2, 3], 5, 10)})
    watcher.looks.put(live)
    follow_to_the_end(beside.shadow, watcher, Stop(), 0.0, lambda: None)
    assert beside.statuses() == [(Status.AGREED, "offline_partition_elected")]


def test_a_second_signal_ends_it_at_once_and_what_waits_is_said() -> None:
    beside = open_match()
    stop = stopped()
    stop.on_signal()
    follow_to_the_end(beside.shadow, unstarted(), stop, None, lambda: None)
    assert beside.statuses() == []
    assert gaps(beside.shadow, unstarted()) == ["1 partitions and topics wait for a match"]


def test_looks_that_nobody_took_are_said() -> None:
    """A divergence may be in them."""
    beside, watcher, stop = Beside(), unstarted(), stopped()
    stop.on_signal()
    for _ in range(2):
        watcher.looks.put(Look(beside.now_ms, states={("t", 0): state(3, [3, 2], 5, 10)}))
    left = follow_to_the_end(beside.shadow, watcher, stop, None, lambda: None)
    assert left == ["2 looks at the cluster were not compared"]
    assert gaps(beside.shadow, watcher) == left


def test_a_look_that_is_under_way_at_the_end_is_waited_for() -> None:
    """What it reads may be a divergence."""
    under_way, read = threading.Event(), threading.Event()
    beside, looks = Beside(), [Look(0, states={("t", 0): state(3, [3], 5, 10)})]

    def look() -> Look:
        under_way.set()
        assert read.wait(60)
        return looks.pop() if looks else Look(0)

    with watching(look) as watcher:
        assert under_way.wait(60)
        stop = stopped()
        stop.on_signal()
        assert follow_to_the_end(beside.shadow, watcher, stop, None, lambda: None) == [
            "a look at the cluster was under way"
        ]
        threading.Timer(0.5, read.set).start()
        assert follow_to_the_end(beside.shadow, watcher, stopped(), None, lambda: None) == []
    assert [status for status, _ in beside.statuses()] == [Status.DIFFERED]


def test_a_look_that_comes_after_the_end_is_no_gap() -> None:
    beside, watcher = Beside(), unstarted()
    left = follow_to_the_end(beside.shadow, watcher, stopped(), None, lambda: None)
    watcher.looks.put(Look(beside.now_ms, states={("t", 0): state(3, [3, 2], 5, 10)}))
    assert gaps(beside.shadow, watcher, left) == []


def test_no_controller_and_no_connection_are_gaps() -> None:
    with watching(lambda: Look(0)) as watcher:
        wait_for("a look", lambda: watcher.found_something is not None)
        (none_seen,) = gaps(unloaded(), watcher)
    assert "no controller was seen" in none_seen
    assert gaps(Beside().shadow, unstarted()) == []
    assert gaps(Beside().shadow, unstarted(held=False)) == [
        "ZooKeeper cannot be read: the connection is lost"
    ]


def test_a_first_read_that_is_not_over_is_a_gap_of_its_own() -> None:
    """Neither while it is under way, nor before our machine has what it brought."""
    brought = Look(0, states={("t", 0): state(2, [2, 3], 5, 10)})
    (under_way,) = gaps(unloaded(), unstarted())
    with watching(lambda: brought) as watcher:
        wait_for("a look", lambda: watcher.found_something is not None)
        (waits,) = gaps(unloaded(), watcher)
    assert under_way == waits
    assert "the first read of the cluster is not over" in waits


def test_what_cannot_be_read_is_a_gap_that_nobody_waits_for() -> None:
    beside, watcher = Beside(), unstarted(broken_topic_znodes=2, broken_partition_states=1)
    follow_to_the_end(beside.shadow, watcher, stopped(), None, lambda: None)
    assert gaps(beside.shadow, watcher) == [
        "State znodes of partitions that cannot be read: 1 passed over, log/shadow.log names them",
        "Znodes of topics that cannot be read: 2 passed over, log/shadow.log names them",
    ]
    assert awaited(beside.shadow, watcher) == []


def test_an_event_that_our_machine_sets_aside_is_a_gap() -> None:
    beside = Beside()
    beside.look(NewRecord("nobody_knows", "t", b"{}"))
    assert gaps(beside.shadow, unstarted()) == [
        "Events that could not be folded: 1; helmstream tap shows each"
    ]


def test_looks_that_fail_are_a_gap_until_one_succeeds() -> None:
    refused = threading.Event()
    refused.set()

    def look() -> Look:
        if refused.is_set():
            raise NO_AUTH
        return Look(0)

    with watching(look) as watcher:
        wait_for("a look that fails", lambda: watcher.trouble)
        assert gaps(unloaded(), watcher) == [f"ZooKeeper cannot be read: {NO_AUTH}"]
        refused.clear()
        wait_for("a look that succeeds", lambda: not watcher.trouble)


@pytest.mark.parametrize(
    ("divergences", "missing", "code"),
    [(0, [], 0), (0, ["x"], INCOMPLETE), (1, [], DIVERGED), (1, ["x"], DIVERGED)],
)
def test_exit_codes(divergences: int, missing: list[str], code: int) -> None:
    assert exit_code(divergences, missing) == code
