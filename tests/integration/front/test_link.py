"""What goes between a real front and whoever says it is the job."""

from __future__ import annotations

import io
import socket
import struct
import threading

import orjson
import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import TopicAlreadyExistsError
from rich.console import Console

from state.decisions import DecisionKind
from state.protocol_errors import ProtocolError
from streaming.commands.status import render_status
from streaming.embedded.ports import free_ports
from streaming.image.cluster_image import ClusterImage
from streaming.link.job_side import AppendRefused, JobLink
from streaming.log.api import NewRecord
from tests.fixtures.scraping import scrape
from tests.fixtures.waiting import WAIT_S, wait_for
from tests.integration.front.harness import put_broker, put_topic
from tests.unit.front.front_figures import brokers_body


@pytest.fixture
def metrics_port():
    return free_ports(1)[0]


@pytest.fixture
def front(start_front, metrics_port):
    front = start_front(event_log_segment_bytes=4_096, metrics_port=metrics_port)
    front.wait_listening()
    return front


def test_appends_are_durable_and_numbered(front, start_job):
    job = start_job()
    front.wait_role("active")
    body = orjson.dumps({"broker_ids": [1]})
    first = job.link.append([NewRecord("log_dir_failure_notified", "", body)] * 2)
    second = job.link.append([NewRecord("log_dir_failure_notified", "", body)])
    assert second == first + 2
    assert [kind for kind, _, _ in front.events(first)] == ["log_dir_failure_notified"] * 3
    with pytest.raises(AppendRefused, match="kind"):
        job.link.append([NewRecord("k" * 70_000, "", b"")])


def test_the_newest_job_is_the_job(front, start_job, data_dir):
    first = start_job()
    assert first.connected.wait(WAIT_S)
    gone = threading.Event()
    second = JobLink(data_dir / "link.sock", on_connected=lambda _: gone.set())
    second.start()
    try:
        assert gone.wait(WAIT_S)
        # Both have this process's id; the one that was replaced comes back and replaces in turn.
        assert first.connected.wait(WAIT_S)
        front.wait_status("a job", lambda status: status["job"]["pid"])
    finally:
        second.stop()


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack("<II", 3, 0) + b"{{{",
        struct.pack("<II", 2, 0) + b"{}",
        struct.pack("<II", 18, 0) + b'{"type":"replies"}',
        struct.pack("<II", 500, 0) + b"cut off",
    ],
)
def test_a_broken_message_costs_its_connection_only(front, start_job, data_dir, frame):
    with socket.socket(socket.AF_UNIX) as broken:
        broken.connect(str(data_dir / "link.sock"))
        broken.sendall(frame)
        broken.shutdown(socket.SHUT_WR)
        broken.settimeout(WAIT_S)
        assert broken.recv(1) == b""
    start_job()
    front.wait_role("active")


def test_timers_are_due_once_each(front, start_job):
    job = start_job(timers={"restored": 1_000})
    due = front.wait_events("timer_due", 1)
    assert due == [{"timer": "restored", "deadline_ms": 1_000}]
    arm = [orjson.dumps({"timer": name, "deadline_ms": at}) for name, at in (("a", 2), ("b", 1))]
    later = orjson.dumps({"timer": "later", "deadline_ms": 1 << 45})
    bodies = [*arm, later]
    decisions = [[9, DecisionKind.ARM_TIMER, len(body)] for body in bodies]
    job.say({"type": "decisions", "batch_id": 1, "decisions": decisions}, b"".join(bodies))
    due = front.wait_events("timer_due", 3)
    assert [(body["timer"], body["deadline_ms"]) for body in due[1:]] == [("b", 1), ("a", 2)]
    front.wait_status("the rest", lambda status: status["timers"] == {"later": 1 << 45})


def test_losing_the_role_disarms_the_timers(front, start_job, zk_session):
    start_job(timers={"later": 1 << 45})
    front.wait_role("active")
    front.wait_status("the timer", lambda status: status["timers"] == {"later": 1 << 45})
    zk_session.delete("/controller")
    front.wait_events("controller_resigned", 1)
    wait_for("disarmed timers", lambda: front.status()["timers"] == {})


def test_the_image_follows_decisions(front, start_job):
    image = ClusterImage()
    image.update_brokers(brokers_body([1]))
    job = start_job(image=image)
    wait_for("the image", lambda: front.status()["brokers"] == [1])
    body = orjson.dumps(brokers_body([1, 2]))
    aside = orjson.dumps({"kind": "x", "key": "", "reason": "r", "payload_bytes": 1})
    decisions = [[4, DecisionKind.UPDATE_BROKERS, len(body)], [5, "set_aside", len(aside)]]
    job.say({"type": "decisions", "batch_id": 1, "decisions": decisions}, body + aside)
    job.say({"type": "delivery", "brokers": {"2": {"confirmed": 7}}})
    job.say({"type": "nonsense"})
    wait_for("both brokers", lambda: front.status()["brokers"] == [1, 2])
    status = wait_for("delivery", lambda: (s := front.status())["delivery"] and s)
    assert status["delivery"] == {"2": {"confirmed": 7}}
    assert status["counters"]["set_aside_events"] == 1
    assert (status["topics"], status["partitions"], status["leaderless"]) == (0, 0, 0)
    shown = io.StringIO()
    Console(width=200, file=shown).print(render_status(status))
    assert "job.completed_offset" in shown.getvalue()


def scraped(port):
    return scrape(port).splitlines()


def test_a_scrape_tells_of_the_role_and_of_the_job(front, start_job, metrics_port):
    assert "kafka_controller_kafkacontroller_activecontrollercount 0.0" in scraped(metrics_port)
    image = ClusterImage()
    image.update_brokers(brokers_body([1, 2]))
    job = start_job(image=image, queue_lengths={"1": 3})
    front.wait_role("active")
    expected = {
        "kafka_controller_kafkacontroller_activecontrollercount 1.0",
        "kafka_controller_kafkacontroller_activebrokercount 2.0",
        'kafka_controller_controllerchannelmanager_queuesize{broker_id="1"} 3.0',
        "helmstream_controller_epoch 1.0",
        "helmstream_job_connected 1.0",
        "helmstream_log_lag 0.0",
        "helmstream_controller_claims_total 1.0",
        "helmstream_set_aside_events_total 0.0",
    }
    wait_for("the figures", lambda: expected <= set(scraped(metrics_port)))
    job.end()
    wait_for("a lost job", lambda: "helmstream_job_connected 0.0" in scraped(metrics_port))


def test_a_job_without_an_image_leaves_the_fronts_as_it_is(front, start_job):
    image = ClusterImage()
    image.update_brokers(brokers_body([1]))
    first = start_job(image=image)
    wait_for("the image", lambda: front.status()["brokers"] == [1])
    first.end()
    job = start_job(snapshot=b"", timers={"later": 1 << 45})
    wait_for("the timers", lambda: front.status()["timers"] == {"later": 1 << 45})
    assert front.status()["brokers"] == [1]
    complete = orjson.dumps({**brokers_body([2]), "complete": True})
    decisions = [[4, DecisionKind.UPDATE_BROKERS, len(complete)]]
    job.say({"type": "decisions", "batch_id": 1, "decisions": decisions}, complete)
    wait_for("what was loaded", lambda: front.status()["brokers"] == [2])


def _delivered(front):
    return front.status()["delivery"].get("at")


def test_the_first_image_comes_with_the_end_of_a_load(front, start_job):
    job = start_job(snapshot=b"")
    partial = orjson.dumps(brokers_body([1]))
    complete = orjson.dumps({**brokers_body([1, 2]), "complete": True})
    for body in (partial, complete):
        assert front.status()["brokers"] is None
        decisions = [[4, DecisionKind.UPDATE_BROKERS, len(body)]]
        job.say({"type": "decisions", "batch_id": 1, "decisions": decisions}, body)
        job.say({"type": "delivery", "brokers": {"at": len(body)}})
        wait_for("the decisions", lambda body=body: _delivered(front) == len(body))
    assert front.status()["brokers"] == [1, 2]


def test_what_the_checkpoint_no_longer_needs_is_let_go(front, start_job):
    job = start_job()
    front.wait_role("active")
    body = orjson.dumps({"broker_ids": [1] * 500})
    for _ in range(8):
        last = job.link.append([NewRecord("log_dir_failure_notified", "", body)] * 4)
    job.say({"type": "batch", "batch_id": 2, "end_offset": last, "retain_from": last - 4})
    start = wait_for("retention", lambda: front.status()["event_log"]["start_offset"])
    assert 0 < start <= last - 4


def test_a_request_is_decided_by_the_job(front, start_job, zk_session):
    put_broker(zk_session, 1)
    put_topic(zk_session, "t", [[1]])
    image = ClusterImage()
    image.update_brokers(brokers_body([]))
    job = start_job(image=image)
    front.wait_role("active")
    port = front.of_kind("controller_elected")[0]["endpoints"][0]["port"]
    outcome = []
    admin = KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}")

    def create() -> None:
        try:
            admin.create_topics([NewTopic("made", 3, 1)])
        except TopicAlreadyExistsError as error:
            outcome.append(error)

    asking = threading.Thread(target=create)
    asking.start()
    (request,) = front.wait_events("create_topic_requested", 1)
    assert (request["topic"], request["partitions"]) == ("made", 3)
    reply = {
        "request_id": request["request_id"],
        "api": "create_topic",
        "topic": "made",
        "topic_id": request["topic_id"],
        "error": ProtocolError.TOPIC_ALREADY_EXISTS,
        "message": "there",
        "partitions": 3,
        "replication_factor": 1,
        "configs": {},
    }
    job.say({"type": "replies", "replies": [reply]})
    asking.join(WAIT_S)
    admin.close()
    assert len(outcome) == 1
    job.say({"type": "replies", "replies": [reply]})
    wait_for("a late reply", lambda: front.status()["counters"].get("late_replies") == 1)
    assert front.status()["waiting_requests"] == 0
