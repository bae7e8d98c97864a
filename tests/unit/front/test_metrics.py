"""Metrics out of a status: Kafka's names and ours, and a scrape over HTTP."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.error
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streaming.embedded.ports import free_ports
from streaming.errors import PortTaken
from streaming.front import metrics
from streaming.front.front import Front
from streaming.front.groups.figures import GroupFigures
from streaming.front.metric_families import families
from streaming.front.metrics import MetricsServer
from streaming.link.from_job import BatchCompleted
from streaming.log.api import NewRecord
from streaming.log.log_clock import LogClock
from streaming.process.wall_clock import wall_clock_ms
from tests.fixtures.scraping import scrape
from tests.fixtures.waiting import WAIT_S, wait_for
from tests.unit.front.front_figures import made_front, play_job, say

CONTROLLER = "kafka_controller_kafkacontroller_"


def with_front(folder: Path, look: Callable[[Front], Any], *overrides: str) -> Any:
    """Return what `look` sees of a front that is not started."""

    async def scenario() -> Any:
        front, log = made_front(folder, *overrides)
        with log:
            return look(front)

    return asyncio.run(scenario())


def samples(status: Mapping[str, Any]) -> dict[tuple[str, ...], float]:
    """(name, label values...) -> value of every sample."""
    found = [sample for family in families(status) for sample in family.samples]
    return {(one.name, *one.labels.values()): one.value for one in found}


def active(status: dict[str, Any]) -> dict[str, Any]:
    return {**status, "role": "active", "epoch": 4}


@pytest.fixture
def status(tmp_path: Path) -> dict[str, Any]:
    """The status of a front whose job completed a batch."""

    def look(front: Front) -> dict[str, Any]:
        play_job(front)
        return front.status()

    return with_front(tmp_path, look)


def test_the_controllers_figures_have_kafkas_names(status):
    found = samples({**active(status), "topics_to_delete": 4})
    expected = {
        f"{CONTROLLER}activecontrollercount": 1,
        f"{CONTROLLER}offlinepartitionscount": 1,
        f"{CONTROLLER}preferredreplicaimbalancecount": 2,
        f"{CONTROLLER}globaltopiccount": 1,
        f"{CONTROLLER}globalpartitioncount": 3,
        f"{CONTROLLER}topicstodeletecount": 4,
        f"{CONTROLLER}activebrokercount": 2,
        "kafka_controller_controllereventmanager_eventqueuesize": 0,
        "kafka_controller_controllerstats_uncleanleaderelections_total": 2,
        "kafka_controller_controllerchannelmanager_totalqueuesize": 7,
    }
    assert {name: found[name,] for name in expected} == expected
    queue = "kafka_controller_controllerchannelmanager_queuesize"
    assert (found[queue, "1"], found[queue, "2"]) == (2, 5)


def test_while_another_one_is_the_controller_all_of_them_are_0(status):
    found = samples(status)
    kafkas = {name: value for name, value in found.items() if name[0].startswith("kafka_")}
    unclean = ("kafka_controller_controllerstats_uncleanleaderelections_total",)
    assert kafkas.pop(unclean) == 2, "a counter never goes back"
    assert len(kafkas) == 9
    assert set(kafkas.values()) == {0}


def test_what_is_not_known_has_no_metric(tmp_path):
    found = samples(active(with_front(tmp_path, Front.status)))
    assert f"{CONTROLLER}activecontrollercount" in {name for name, *_ in found}
    assert (f"{CONTROLLER}offlinepartitionscount",) not in found
    assert ("kafka_controller_controllerchannelmanager_totalqueuesize",) not in found
    assert ("helmstream_controller_epoch",) not in samples(with_front(tmp_path, Front.status))


def test_queues_are_not_known_when_their_job_is_gone(status, tmp_path):
    def look(front: Front) -> dict[str, Any]:
        play_job(front)
        front._feed.job_gone()
        return front.status()

    found = samples(active(with_front(tmp_path / "other", look)))
    assert ("kafka_controller_controllerchannelmanager_totalqueuesize",) not in found
    assert found["helmstream_job_connected",] == 0


def test_groups_are_counted_by_state_where_they_are_taken_over(status):
    assert not any("groupmetadatamanager" in name for name, *_ in samples(status))
    figures = GroupFigures()
    changes: list[Any] = [
        {"change": "rebalance_started", "at_ms": 0},
        {"change": "assignment_distributed", "at_ms": 700},
        {"change": "member_removed", "member": "a", "instance": None, "reason": "left"},
    ]
    figures.decided("g", changes)
    states = {"Stable": 2, "Empty": 1}
    groups = {"enabled": True, "groups": 3, "states": states, "partitions": {}, **figures.status()}
    found = samples({**status, "groups": groups})
    assert found["kafka_server_group_coordinator_metrics_group_completed_rebalance_count",] == 1
    assert found["helmstream_group_rebalances_total",] == 1
    assert found["helmstream_group_rebalance_seconds_bucket", "0.5"] == 0
    assert found["helmstream_group_rebalance_seconds_bucket", "1.0"] == 1
    assert found["helmstream_group_rebalance_seconds_sum",] == 0.7
    assert found["helmstream_group_members_removed_total", "left"] == 1
    assert found["helmstream_group_members_removed_total", "session_expired"] == 0
    prefix = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    of_groups = {
        name.removeprefix(prefix): value for (name, *_), value in found.items() if prefix in name
    }
    assert of_groups == {
        "": 3,
        "empty": 1,
        "preparingrebalance": 0,
        "completingrebalance": 0,
        "stable": 2,
        "dead": 0,
    }


def test_our_own_figures(status):
    counters = {"set_aside_events": 2, "something_new": 1}
    gateway = {"connections_open": 3, "connections_accepted": 4, "requests_Metadata": 9}
    found = samples({**active(status), "counters": counters, "gateway": gateway, "paused": True})
    expected = {
        ("helmstream_role", "active"): 1,
        ("helmstream_role", "waiting_for_job"): 0,
        ("helmstream_controller_epoch",): 4,
        ("helmstream_paused",): 1,
        ("helmstream_job_connected",): 1,
        ("helmstream_batches_total",): 1,
        ("helmstream_decisions_total",): 3,
        ("helmstream_conflicts_total",): 1,
        ("helmstream_leader_elections_total", "unclean_elected"): 2,
        ("helmstream_leader_elections_total", "preferred_replica_elected"): 0,
        ("helmstream_under_replicated_partitions",): 2,
        ("helmstream_leaderless_partitions",): 1,
        ("helmstream_broker_confirmed_offset", "1"): 7,
        ("helmstream_set_aside_events_total",): 2,
        ("helmstream_reply_timeouts_total",): 0,
        ("helmstream_something_new_total",): 1,
        ("helmstream_gateway_requests_total", "Metadata"): 9,
        ("helmstream_gateway_connections_open",): 3,
        ("helmstream_gateway_connections_accepted_total",): 4,
    }
    assert {key: found[key] for key in expected} == expected


def test_the_age_of_what_waits_is_that_of_its_oldest_event(tmp_path):
    def look(front: Front) -> list[float]:
        front._log.append([NewRecord("a", "", b"{}"), NewRecord("b", "", b"{}")])
        lease, now_s = front._lease.lease, front._loop.time()
        lease.appended(1, now_s - 5)
        lease.appended(2, now_s - 1)
        ages = [front.status()]
        say(front, {"type": "batch", "batch_id": 1, "end_offset": 1})
        ages.append(front.status())
        say(front, {"type": "batch", "batch_id": 2, "end_offset": 2})
        ages.append(front.status())
        return [samples(one)["helmstream_oldest_waiting_event_age_seconds",] for one in ages]

    first, second, none = with_front(tmp_path, look)
    assert first >= 5 > second >= 1
    assert none == 0


def scraped(port: int) -> dict[tuple[str, ...], float]:
    told = text_string_to_metric_families(scrape(port))
    found = [one for family in told for one in family.samples]
    return {(one.name, *one.labels.values()): one.value for one in found}


def test_a_scrape_over_http(tmp_path):
    (port,) = free_ports(1)

    async def scenario() -> dict[tuple[str, ...], float]:
        front, log = made_front(tmp_path, f"metrics.port={port}")
        with log:
            play_job(front)
            ahead = {"first_event_ms": 9_000, "written_at_ms": 2_000}
            say(front, {"type": "batch", "batch_id": 2, "end_offset": 0, **ahead})
            await asyncio.to_thread(front._metrics.start)
            try:
                found = await asyncio.to_thread(scraped, port)
            finally:
                await asyncio.to_thread(front._metrics.stop)
        return found

    found = asyncio.run(scenario())
    assert found["helmstream_batches_total",] == 2
    assert found["helmstream_batch_duration_seconds_bucket", "0.05"] == 0
    assert found["helmstream_batch_duration_seconds_bucket", "0.1"] == 1
    taken_s = found["helmstream_event_to_zookeeper_seconds_sum",]
    assert taken_s == pytest.approx(0.25, abs=0.1)
    with pytest.raises(urllib.error.URLError):
        scraped(port)


@pytest.mark.parametrize("said", [b"", b"GET /metrics HTTP/1.1\r\n"])
def test_a_connection_that_is_silent_is_dropped_without_a_word(monkeypatch, capfd, said):
    """It has a thread and a descriptor."""
    (port,) = free_ports(1)
    monkeypatch.setattr(metrics._Handler, "timeout", 0.5)

    def dropped() -> bytes:
        before = set(threading.enumerate())
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as silent:
            silent.sendall(said)
            found = silent.recv(100)
        wait_for("its thread's end", lambda: before >= set(threading.enumerate()))
        return found

    async def scenario() -> bytes:
        server = MetricsServer("127.0.0.1", port, dict, wall_clock_ms)
        server.start()
        try:
            return await asyncio.to_thread(dropped)
        finally:
            await asyncio.to_thread(server.stop)

    assert asyncio.run(scenario()) == b""
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("set_by_ms", [-600_000, 600_000])
def test_a_wall_clock_that_is_set_makes_nobody_wait(monkeypatch, set_by_ms):
    """Events' times go on from where they were, the job tells the wall's."""
    wall_ms, elapsed_s = 1_000_000_000, 0.0
    clock = LogClock(lambda: wall_ms, lambda: elapsed_s)
    monkeypatch.setattr(metrics, "wall_clock_ms", lambda: wall_ms)
    wall_ms += set_by_ms
    first_event_ms = clock.now_ms()
    wall_ms, elapsed_s = wall_ms + 250, 0.25

    async def taken_s() -> float:
        server = MetricsServer("127.0.0.1", 0, dict, clock.now_ms)
        times = {"first_event_ms": first_event_ms, "written_at_ms": wall_ms}
        server.batch_completed(BatchCompleted(1, 1, **times))
        (family,) = server._written_s.collect()
        return next(one.value for one in family.samples if one.name.endswith("_sum"))

    assert asyncio.run(taken_s()) == pytest.approx(0.25, rel=1 / 16 + 0.01)


def test_no_port_is_opened_unless_one_is_set(tmp_path):
    assert with_front(tmp_path, lambda front: front._metrics) is None


def test_a_port_that_is_taken_is_named():
    (port,) = free_ports(1)

    async def scenario() -> None:
        first = MetricsServer("127.0.0.1", port, dict, wall_clock_ms)
        second = MetricsServer("127.0.0.1", port, dict, wall_clock_ms)
        first.start()
        try:
            with pytest.raises(PortTaken, match=rf"127.0.0.1:{port} .*metrics\.port"):
                second.start()
            second.stop()
        finally:
            await asyncio.to_thread(first.stop)

    asyncio.run(scenario())
