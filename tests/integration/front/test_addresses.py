"""What is announced, and the brokers beside which the role is refused, before it is claimed."""

from __future__ import annotations

from streaming.embedded.ports import free_ports
from streaming.wire.endpoints import SecurityProtocol
from streaming.zk.znodes import broker_path, parse_broker
from tests.integration.front.harness import CONTROLLER_ID, put_broker

EVERYWHERE = "0.0.0.0"  # noqa: S104 - what an operator binds


def test_the_advertised_host_is_registered_and_elected(zk_session, start_with_job):
    put_broker(zk_session, 1, host="10.0.0.1")
    front = start_with_job(gateway_host=EVERYWHERE, gateway_advertised_host="controller.example")
    front.wait_role("active")
    (ours,) = front.of_kind("controller_elected")[0]["endpoints"]
    assert (ours["listener"], ours["host"]) == ("CLIENT", "controller.example")
    (end,) = parse_broker(zk_session.get(f"/brokers/ids/{CONTROLLER_ID}").data).endpoints
    assert (end.listener, end.host, end.port) == ("CLIENT", "controller.example", ours["port"])


def refused(zk_session, front) -> str:
    """What a front said that ended because of its configuration, without the role."""
    assert front.wait_end() == 2
    assert zk_session.get("/controller") is None
    return front.process.log_path.read_text()


def test_a_loopback_host_is_refused_beside_brokers_elsewhere(zk_session, start_with_job):
    put_broker(zk_session, 1, host="10.0.0.1")
    front = start_with_job()
    last = refused(zk_session, front).splitlines()[-1]
    assert last.startswith("error: gateway.host = '127.0.0.1' is reached from this machine only")
    assert front.of_kind("controller_elected") == []


def test_a_listener_that_has_to_be_chosen_is_asked_for(zk_session, start_with_job):
    put_broker(zk_session, 1, listeners=("CLIENT", "INTERNAL"))
    said = refused(zk_session, start_with_job(gateway_listeners="CLIENT,INTERNAL"))
    assert "inter.broker.listener.name is empty" in said
    assert "allowed: CLIENT, INTERNAL" in said


def test_brokers_without_a_plaintext_listener_are_refused(zk_session, start_with_job):
    put_broker(zk_session, 1, protocols={"CLIENT": SecurityProtocol.SASL_SSL})
    said = refused(zk_session, start_with_job(gateway_listeners=""))
    assert "no listener that this node can serve" in said
    assert "CLIENT is SASL_SSL at broker 1" in said


def test_the_id_of_a_broker_is_refused(zk_session, start_with_job):
    put_broker(zk_session, 1)
    put_broker(zk_session, CONTROLLER_ID, port=9093)
    said = refused(zk_session, start_with_job()).splitlines()[-1]
    assert said.startswith(f"error: controller.id = {CONTROLLER_ID} is the id of a broker at 127.0")


def test_the_id_of_the_only_broker_is_refused(zk_session, start_with_job):
    """Also where a first broker is waited for, to know its listeners."""
    front = start_with_job(gateway_listeners="")
    put_broker(zk_session, CONTROLLER_ID, port=9093)
    last = refused(zk_session, front).splitlines()[-1]
    assert last.endswith("broker at 127.0.0.1:9093: set it to an id that no broker has")


def test_what_an_earlier_session_left_is_waited_for(zk_session, start_with_job):
    (port,) = free_ports(1)
    put_broker(zk_session, CONTROLLER_ID, port=port)
    front = start_with_job(gateway_listeners="", gateway_port=port)
    front.wait_status("a loss", lambda status: status["counters"].get("controller_losses"))
    zk_session.delete(broker_path(CONTROLLER_ID))
    put_broker(zk_session, 1)
    front.wait_role("active")


def test_the_role_goes_when_such_a_broker_comes_later(zk_session, start_with_job):
    put_broker(zk_session, 1)
    front = start_with_job()
    front.wait_role("active")
    put_broker(zk_session, 2, host="10.0.0.2")
    assert front.wait_end() == 2
    assert zk_session.get("/controller") is None
    (resigned,) = front.of_kind("controller_resigned")
    assert "broker 2 is at 10.0.0.2:9092 (CLIENT)" in resigned["reason"]
    assert len(front.of_kind("controller_elected")) == 1


def test_no_address_at_all_is_refused_at_once(start_front):
    front = start_front(gateway_host=EVERYWHERE)
    assert front.wait_end() == 2
    assert "gateway.host = '0.0.0.0' stands for all addresses" in front.process.log_path.read_text()
