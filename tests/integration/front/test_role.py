"""How the controller role is taken, lost, given back and taken again."""

from __future__ import annotations

import asyncio
import socket

import orjson
import pytest

from streaming.embedded.ports import free_ports
from streaming.wire.apis import ApiKey
from streaming.zk.claim import claim_controller
from streaming.zk.client import ZkSession
from streaming.zk.ops import Create, Delete, SetData
from streaming.zk.znodes import broker_path, parse_broker
from tests.fixtures.waiting import wait_for
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS
from tests.integration.front.harness import CONTROLLER_ID, put_broker, stays
from tests.unit.gateway.support import Client, FakeCluster

SHORT_LEASE_S = 4
PAST_LEASE_S = SHORT_LEASE_S + 1.0


@pytest.fixture
def active(zk_session, start_front, start_job):
    """Start a front with some settings, and a job; returns both once the front has the role."""

    def active(**settings):
        put_broker(zk_session, 1)
        front = start_front(**settings)
        front.wait_listening()
        job = start_job()
        front.wait_role("active")
        return front, job

    return active


@pytest.fixture
def front_and_job(active):
    return active()


@pytest.fixture
def short_leased(active):
    """A front and a job that costs it the role when it does nothing for the short lease."""
    front, job = active(controller_lease_ms=SHORT_LEASE_S * 1000)
    wait_for("nothing that waits for the job", lambda: not front.status()["job"]["lag"])
    return front, job


def kinds(front) -> list[str]:
    return [kind for kind, _, _ in front.events()]


def last_registered(front) -> list[int]:
    changes = front.of_kind("broker_registrations_changed")
    return [broker["id"] for broker in changes[-1]["registered"]]


def test_without_a_job_nothing_is_claimed(zk_session, start_front):
    front = start_front()
    front.wait_role("waiting_for_job")
    assert zk_session.get("/controller") is None
    assert front.events() == []


def test_a_stolen_role_is_taken_back_later(zookeeper, zk_session, front_and_job):
    front, _ = front_and_job
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS) as thief:
        assert claim_controller(thief, 7, steal=True).epoch == 2
        (resigned,) = front.wait_events("controller_resigned", 1)
        assert resigned == {"reason": "/controller was taken by 7"}
        elected = front.wait_events("controller_elected", 2)
    assert [(body["epoch"], body["epoch_zk_version"]) for body in elected] == [(1, 1), (3, 3)]
    front.wait_role("active")
    assert orjson.loads(zk_session.get("/controller").data)["brokerid"] == CONTROLLER_ID


def told(port: int) -> tuple[int, int]:
    """Whom a node tells clients as the controller, and the error of looking for a coordinator."""

    async def answers() -> tuple[int, int]:
        client = Client(*await asyncio.open_connection("127.0.0.1", port))
        try:
            metadata = await client.ask(ApiKey.METADATA, 12, {"topics": []})
            found = await client.ask(ApiKey.FIND_COORDINATOR, 3, {"key": "g", "key_type": 0})
        finally:
            await client.close()
        return metadata["controller_id"], found["error_code"]

    return asyncio.run(answers())


def test_what_was_known_before_another_controller_is_not_told_as_ours(
    zookeeper, zk_session, start_front, start_job
):
    cluster = FakeCluster()
    cluster.create("__consumer_offsets", [[1, 2]])
    zk_session.create("/controller_epoch", b"%d" % (cluster.known.controller_epoch - 1))
    put_broker(zk_session, 1)
    front = start_front()
    front.wait_listening()
    job = start_job(snapshot=cluster.known.snapshot())
    front.wait_role("active")
    port = parse_broker(zk_session.get(broker_path(CONTROLLER_ID)).data).endpoints[0].port
    assert told(port) == (CONTROLLER_ID, 0)
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS) as thief:
        claim_controller(thief, 7, steal=True)
        epoch = front.wait_events("controller_elected", 2)[1]["epoch"]
    front.wait_role("active")
    assert told(port) == (-1, 15)
    cluster.known.controller_epoch = epoch
    job.say({"type": "image"}, cluster.known.snapshot())
    wait_for("what is decided under the new epoch", lambda: told(port) == (CONTROLLER_ID, 0))


def test_who_finds_another_helmstream_with_its_id_again_and_again_ends(
    zookeeper, front_and_job, data_dir
):
    front, _ = front_and_job
    for number in range(1, 4):
        with ZkSession(zookeeper, SESSION_TIMEOUT_MS) as other:
            claim_controller(other, CONTROLLER_ID, steal=True)
            if number < 3:
                front.wait_events("controller_elected", number + 1)
            else:
                assert front.wait_end() == 2
                assert other.get("/controller").ephemeral_owner == other.session_id
    said = (data_dir / "log" / "front.log").read_text()
    assert f"by another process with controller.id = {CONTROLLER_ID}" in said


def test_for_a_job_that_knows_of_no_election_all_is_loaded_again_under_the_same_claim(
    front_and_job, start_job
):
    front, job = front_and_job
    job.end()
    begins = len(front.events())
    start_job(snapshot=b"", end_offset=begins, without_term=True)
    first, again = front.wait_events("controller_elected", 2)
    assert first == again
    front.wait_events("resync_completed", 2)
    loaded = [kind for kind, _, _ in front.events(begins)]
    assert loaded[0] == "controller_elected"
    assert {"broker_registrations_changed", "resync_completed"} <= {*loaded}
    assert "controller_resigned" not in loaded
    front.wait_role("active")


def test_a_deleted_controller_znode_ends_the_term(zk_session, front_and_job):
    front, _ = front_and_job
    zk_session.delete("/controller")
    (resigned,) = front.wait_events("controller_resigned", 1)
    assert resigned == {"reason": "/controller was deleted"}
    assert [e["epoch"] for e in front.wait_events("controller_elected", 2)] == [1, 2]


def test_an_expired_session_is_never_taken_up_again(zk_session, active):
    front, _ = active(zookeeper_session_timeout_ms=4_000)
    before = zk_session.get("/controller").ephemeral_owner
    front.process.pause()
    wait_for("the session's end", lambda: zk_session.get("/controller") is None)
    front.process.resume()
    (resigned,) = front.wait_events("controller_resigned", 1)
    # It is told of the end, sees the znode gone, or meets the end with what it is about to do.
    told = ("the ZooKeeper session expired", "/controller was deleted", "session expired or closed")
    assert resigned["reason"].startswith(told)
    assert front.wait_events("controller_elected", 2)[1]["epoch"] == 2
    assert zk_session.get("/controller").ephemeral_owner != before


def test_a_silent_job_costs_the_role_until_it_is_back(zk_session, short_leased):
    front, job = short_leased
    job.silence()
    put_broker(zk_session, 2)  # an event that nobody folds
    (resigned,) = front.wait_events("controller_resigned", 1)
    assert f"no batch was completed for {SHORT_LEASE_S} s" in resigned["reason"]
    wait_for("the deleted znode", lambda: zk_session.get("/controller") is None)
    front.wait_role("waiting_for_job")
    job.resume()
    assert front.wait_events("controller_elected", 2)[1]["epoch"] == 2
    wait_for("brokers 1 and 2 in the last registrations", lambda: last_registered(front) == [1, 2])


def test_an_idle_but_silent_job_keeps_the_role(short_leased):
    front, job = short_leased
    job.silence()
    job.say({"type": "batch", "batch_id": 2, "end_offset": len(front.events())})
    stays("the role", lambda: front.status()["role"] == "active", for_s=PAST_LEASE_S)


def test_a_job_that_is_gone_costs_the_role_after_the_lease(zk_session, short_leased, start_job):
    front, job = short_leased
    job.end()
    (resigned,) = front.wait_events("controller_resigned", 1)
    assert resigned == {"reason": f"no job was connected for {SHORT_LEASE_S} s"}
    wait_for("the deleted znode", lambda: zk_session.get("/controller") is None)
    start_job()
    assert front.wait_events("controller_elected", 2)[1]["epoch"] == 2


@pytest.mark.parametrize("connects_again", [False, True])
def test_a_job_whose_query_never_folds_costs_the_role_once(short_leased, start_job, connects_again):
    front, job = short_leased
    job.end()
    front.wait_events("controller_resigned", 1)
    again = start_job(batch_id=None)
    stays("no claim", lambda: len(front.of_kind("controller_elected")) == 1, for_s=PAST_LEASE_S)
    if connects_again:
        again.end()
        start_job(batch_id=None, query_folds=True)
    else:
        again.say({"type": "query", "end_offset": 1})
    assert front.wait_events("controller_elected", 2)[1]["epoch"] == 2


def test_a_job_that_is_back_within_the_lease_costs_nothing(active, start_job):
    front, job = active(controller_lease_ms=6_000)
    job.end()
    start_job()
    front.wait_status("the job", lambda status: status["job"]["pid"])
    stays("the role", lambda: front.status()["epoch"] == 1, for_s=6.5)


def test_a_job_may_fold_all_there_is_before_the_front_listens(
    front_and_job, start_front, start_job
):
    """It has nothing more to complete then, and says so when it comes."""
    front, job = front_and_job
    job.end()
    front.process.kill()
    again = start_front()
    again.wait_listening()
    start_job(silent=True, end_offset=len(again.events()))
    assert again.wait_events("controller_elected", 2)[1]["epoch"] == 2


def test_a_killed_front_steals_its_own_role_back(zk_session, front_and_job, start_front):
    front, _ = front_and_job
    front.process.kill()
    assert zk_session.get("/controller") is not None
    again = start_front()
    elected = again.wait_events("controller_elected", 2)
    again.wait_role("active")
    assert [body["epoch"] for body in elected] == [1, 2]
    assert again.of_kind("controller_resigned") == [{"reason": "front started"}]
    order = [k for k in kinds(again) if k.startswith("controller_")]
    assert order == ["controller_elected", "controller_resigned", "controller_elected"]


def test_sigterm_gives_the_role_back_at_once(zk_session, front_and_job):
    front, _ = front_and_job
    assert front.stop() == 0
    assert zk_session.get("/controller") is None
    assert zk_session.get(f"/brokers/ids/{CONTROLLER_ID}") is None
    assert front.of_kind("controller_resigned") == [{"reason": "stopped"}]
    assert kinds(front)[-1] == "controller_resigned"


def test_a_fenced_batch_is_checked_against_zookeeper(zk_session, front_and_job):
    front, job = front_and_job
    end = len(front.events())
    job.say({"type": "batch", "batch_id": 2, "end_offset": end, "fenced": True})
    put_broker(zk_session, 2)
    front.wait_events("broker_registrations_changed", 2)
    assert not front.of_kind("controller_resigned")  # it was an old epoch's: the role is ours
    zk_session.set("/controller_epoch", b"9")
    job.say({"type": "batch", "batch_id": 3, "end_offset": end, "fenced": True})
    (resigned,) = front.wait_events("controller_resigned", 1)
    assert "/controller_epoch" in resigned["reason"]
    assert front.wait_events("controller_elected", 2)[1]["epoch"] == 10


def test_two_fronts_cannot_write_one_log(front_and_job, start_front):
    second = start_front()
    assert second.wait_end() == 1
    assert "already written by process" in second.process.log_path.read_text()


def test_a_front_without_zookeeper_waits_for_it(zookeeper_server, start_with_job):
    connect = zookeeper_server.connect_string
    zookeeper_server.stop()
    front = start_with_job(connect, zookeeper_connection_timeout_ms=1_000)
    wait_for("a refusal", lambda: front.status()["counters"].get("controller_losses", 0) >= 1)
    zookeeper_server.start()
    front.wait_role("active")
    assert kinds(front)[0] == "controller_elected"


def test_a_registration_with_our_address_keeps_our_id_while_it_is_there(
    zookeeper, zk_session, start_with_job
):
    (port,) = free_ports(1)
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS) as broker:
        epoch = put_broker(broker, CONTROLLER_ID, port=port)
        front = start_with_job(gateway_port=port)
        wait_for("a refusal", lambda: front.status()["counters"].get("controller_losses", 0) >= 1)
        assert zk_session.get(f"/brokers/ids/{CONTROLLER_ID}").czxid == epoch
        assert zk_session.get("/controller") is None
    front.wait_role("active")


def test_a_taken_port_ends_the_process_with_the_network_code(start_front):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        front = start_front(gateway_port=taken.getsockname()[1])
        assert front.wait_end() == 4
    assert "gateway.port" in front.process.log_path.read_text()


def test_a_kraft_quorum_that_waits_is_told_of(zk_session, front_and_job):
    front, _ = front_and_job
    assert not front.status()["migration"]
    zk_session.create("/migration", b"{}")
    wait_for("word of it", lambda: front.status()["migration"])
    assert "waits to take this cluster over" in front.process.log_path.read_text()
    zk_session.delete("/migration")
    wait_for("word of its end", lambda: not front.status()["migration"])


def test_a_front_ends_when_the_cluster_migrates_to_kraft(zk_session, front_and_job):
    """A KRaft controller takes the role in one multi, as KafkaZkClient does for it."""
    front, _ = front_and_job
    held = b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":5}'
    epoch = zk_session.get("/controller_epoch")
    taking = [
        SetData("/controller_epoch", b"%d" % (int(epoch.data) + 1), epoch.version),
        Delete("/controller"),
        Create("/controller", held),
    ]
    assert [code for code, _ in zk_session.multi(taking)] == [0, 0, 0]
    assert front.wait_end() == 2
    assert "held by KRaft controller 3000" in front.process.log_path.read_text()
    assert zk_session.get("/controller").data == held
