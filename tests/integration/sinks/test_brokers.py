"""Delivery to brokers: order, one in flight, until answered, each broker for itself."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from streaming.image.brokers import RegisteredBroker, broker_node
from streaming.sinks import channel
from streaming.wire.apis import ApiKey
from tests.fixtures.stub_brokers import OF_2_1
from tests.fixtures.waiting import WAIT_S, wait_for
from tests.integration.sinks.support import Notes, numbered, registered

UM, LISR, STOP = ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA


@pytest.fixture
def notes() -> Iterator[Notes]:
    notes = Notes()
    yield notes
    notes.sink.close()


@pytest.fixture
def impatient() -> Iterator[Notes]:
    notes = Notes(timeout_ms=150)
    yield notes
    notes.sink.close()


def numbers(broker):
    """The requests that came, by their controller epoch."""
    return [request.body["controller_epoch"] for request in broker.received]


def brokers_of(stubs, *ids):
    return {id_: registered(id_, stubs[id_].port) for id_ in ids}


def test_requests_arrive_in_order_one_in_flight(stub_brokers, notes):
    stub_brokers.start(1)
    plan = {1: [numbered(number) for number in range(40)]}
    notes.sink.deliver(brokers_of(stub_brokers, 1), plan, 7)
    notes.sink.deliver(brokers_of(stub_brokers, 1), {1: [numbered(40, STOP)]}, 9)
    notes.wait_confirmed((1, 7), (1, 9))
    assert numbers(stub_brokers[1]) == list(range(41))
    assert notes.confirmed == [(1, 7), (1, 9)], "once per batch, when all of it is answered"
    assert notes.sent == [(1, 7), (1, 9)]
    assert (stub_brokers[1].in_flight_max, stub_brokers[1].connections) == (1, 1)
    assert [answer.request.controller_epoch for answer in notes.answers] == list(range(41))
    assert {answer.broker_epoch for answer in notes.answers} == {101}
    assert stub_brokers[1].received[0].body["broker_epoch"] == 101
    assert notes.sink.queue_lengths() == {1: 0}


def test_a_broker_whose_port_opens_late_gets_everything(stub_brokers, notes):
    stub_brokers.start(1)
    stub_brokers.stop(1)
    notes.sink.deliver(brokers_of(stub_brokers, 1), {1: [numbered(1), numbered(2)]}, 3)
    wait_for("a refused connection", lambda: notes.sink.queue_lengths() == {1: 2})
    stub_brokers.start(1)
    notes.wait_confirmed((1, 3))
    assert numbers(stub_brokers[1]) == [1, 2]


def test_a_broker_that_hangs_up_is_sent_the_same_again(stub_brokers, notes):
    stub_brokers.start(1)
    stub_brokers[1].hang_up_after = 2
    notes.sink.deliver(brokers_of(stub_brokers, 1), {1: [numbered(n) for n in range(5)]}, 3)
    notes.wait_confirmed((1, 3))
    assert numbers(stub_brokers[1]) == [0, 1, 2, 2, 3, 4]
    assert stub_brokers[1].connections == 2
    assert len(notes.answers) == 5


def test_a_broker_that_hangs_is_asked_again_on_a_new_connection(stub_brokers, impatient):
    stub_brokers.start(1)
    stub_brokers[1].silent = True
    impatient.sink.deliver(brokers_of(stub_brokers, 1), {1: [numbered(1), numbered(2)]}, 3)
    wait_for("a second try", lambda: stub_brokers[1].connections >= 2)
    stub_brokers[1].silent = False
    impatient.wait_confirmed((1, 3))
    assert set(numbers(stub_brokers[1])) == {1, 2}
    assert numbers(stub_brokers[1])[-1] == 2
    assert [answer.request.controller_epoch for answer in impatient.answers] == [1, 2]


def test_a_slow_broker_does_not_delay_another(stub_brokers, notes):
    stub_brokers.start(1, 2)
    stub_brokers[1].silent = True
    registered_brokers = brokers_of(stub_brokers, 1, 2)
    for end in range(1, 21):
        requests = [numbered(end)]
        notes.sink.deliver(registered_brokers, {1: requests, 2: requests}, end)
    notes.wait_confirmed((2, 20))
    assert numbers(stub_brokers[2]) == list(range(1, 21))
    wait_for("the first request", lambda: numbers(stub_brokers[1]) == [1])
    assert notes.sink.queue_lengths() == {1: 20, 2: 0}


def test_a_broker_that_registered_again_is_a_new_one(stub_brokers, notes):
    stub_brokers.start(1)
    stub_brokers[1].silent = True
    notes.sink.deliver(brokers_of(stub_brokers, 1), {1: [numbered(1), numbered(2)]}, 3)
    wait_for("the first request", lambda: numbers(stub_brokers[1]) == [1])
    stub_brokers[1].silent = False
    again = {1: registered(1, stub_brokers[1].port, epoch=500)}
    notes.sink.deliver(again, {1: [numbered(9)]}, 8)
    notes.wait_confirmed((1, 8))
    assert numbers(stub_brokers[1]) == [1, 9], "the second was for the registration before"
    assert stub_brokers[1].received[-1].body["broker_epoch"] == 500
    assert notes.confirmed == [(1, 8)]


def test_a_broker_that_moved_keeps_what_waits(stub_brokers, notes):
    """A registration may change its address without a new session (dynamic listeners)."""
    stub_brokers.start(1, 2)
    stub_brokers[1].silent = True
    notes.sink.deliver(brokers_of(stub_brokers, 1), {1: [numbered(1), numbered(2)]}, 3)
    wait_for("the first request", lambda: numbers(stub_brokers[1]) == [1])
    moved = {1: registered(1, stub_brokers[2].port)}
    notes.sink.deliver(moved, {1: [numbered(3)]}, 5)
    notes.wait_confirmed((1, 3), (1, 5))
    assert numbers(stub_brokers[2]) == [1, 2, 3]


def test_a_broker_that_is_far_behind_catches_up(stub_brokers, notes, monkeypatch):
    """What waits is replaced; not what is in flight, nor what tells of ends."""
    monkeypatch.setattr(channel, "MAX_WAITING", 5)
    stub_brokers.start(1)
    stub_brokers[1].silent = True
    here = brokers_of(stub_brokers, 1)
    plans = [{1: [numbered(number, STOP if number == 3 else UM)]} for number in range(1, 7)]
    behind = [notes.sink.deliver(here, plan, 10 + at) for at, plan in enumerate(plans)]
    assert behind == [[]] * 5 + [[1]]
    wait_for("the first request", lambda: numbers(stub_brokers[1]) == [1])
    notes.sink.catch_up({1: [numbered(50), numbered(51, LISR)]}, 15)
    assert notes.sink.queue_lengths() == {1: 4}
    assert notes.sink.deliver(here, {1: [numbered(60)]}, 16) == [], "not before as many wait again"
    assert notes.confirmed == []
    stub_brokers[1].silent = False
    stub_brokers.hang_up(1)
    notes.wait_confirmed((1, 16))
    assert numbers(stub_brokers[1]) == [1, 1, 3, 50, 51, 60]
    assert notes.confirmed == [(1, 15), (1, 16)], "also what was sent and is queued again"


def test_a_broker_that_left_is_told_nothing_more(stub_brokers, notes):
    stub_brokers.start(1, 2)
    stub_brokers[1].silent = True
    notes.sink.deliver(brokers_of(stub_brokers, 1, 2), {1: [numbered(1), numbered(2)]}, 3)
    wait_for("the first request", lambda: numbers(stub_brokers[1]) == [1])
    plan = {1: [numbered(3)], 2: [numbered(3)]}
    notes.sink.deliver(brokers_of(stub_brokers, 2), plan, 5)
    notes.wait_confirmed((2, 5))
    assert notes.sink.queue_lengths() == {2: 0}
    wait_for("the connection's end", lambda: not stub_brokers[1].connected)
    assert numbers(stub_brokers[1]) == [1]


def test_each_broker_is_spoken_to_in_its_own_versions(stub_brokers, notes):
    stub_brokers.start(1)
    stub_brokers.start(2, versions=OF_2_1)
    stub_brokers.start(3, versions={UM: 99, LISR: 99, STOP: 99})
    shared = [numbered(1, UM), numbered(2, LISR), numbered(3, STOP)]
    notes.sink.deliver(brokers_of(stub_brokers, 1, 2, 3), dict.fromkeys((1, 2, 3), shared), 3)
    notes.wait_confirmed((1, 3), (2, 3), (3, 3))
    used = {
        id_: [request.header.api_version for request in stub_brokers[id_].received]
        for id_ in (1, 2, 3)
    }
    assert used == {1: [8, 7, 4], 2: [5, 2, 1], 3: [8, 7, 4]}


def test_a_broker_that_learns_an_api_by_an_upgrade_is_served_then(stub_brokers, notes, caplog):
    stub_brokers.start(1, versions={UM: 8})
    notes.sink.deliver(
        brokers_of(stub_brokers, 1), {1: [numbered(1), numbered(2, LISR), numbered(3)]}, 3
    )
    wait_for("a complaint", lambda: "does not support LEADER_AND_ISR" in caplog.text)
    assert numbers(stub_brokers[1]) == [1], "order is kept: nothing overtakes"
    stub_brokers[1].versions[LISR] = 7
    notes.wait_confirmed((1, 3))
    assert numbers(stub_brokers[1]) == [1, 2, 3]
    assert caplog.text.count("does not support") == 1, "said once, however often it is tried"


def test_nonsense_and_foreign_answers_are_asked_again(notes, caplog):
    """A port on which something else listens; then an answer to another request."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        here = {1: registered(1, server.getsockname()[1])}
        notes.sink.deliver(here, {1: [numbered(1)]}, 3)
        for said in (b"\x00\x00\x00\x03abc", b"\x00\x00\x00\x0a\x00\x00\x7f\xff" + bytes(6)):
            accepted, _ = server.accept()
            accepted.recv(1000)
            accepted.sendall(said)
            accepted.close()
        accepted, _ = server.accept()
        accepted.close()
    assert "broker 1 at 127.0.0.1" in caplog.text
    assert notes.confirmed == []
    assert notes.sink.queue_lengths() == {1: 1}


def test_a_broker_without_our_listener_costs_the_others_nothing(stub_brokers, notes, caplog):
    stub_brokers.start(1, 2)
    ends = [{"listener": "OTHER", "host": "h", "port": 1, "security_protocol": 0}]
    lost = RegisteredBroker(broker_node({"id": 1, "rack": None, "endpoints": ends}), 101)
    both = {1: lost, **brokers_of(stub_brokers, 2)}
    notes.sink.deliver(both, {1: [numbered(1)], 2: [numbered(1)]}, 3)
    notes.wait_confirmed((2, 3))
    for _ in range(3):
        notes.sink.deliver(both, {}, 4)
    assert caplog.text.count("broker 1 has no listener 'INTERNAL'") == 1, "not with each batch"
    notes.sink.deliver({1: replace(lost, epoch=102)}, {}, 5)
    assert caplog.text.count("broker 1 has no listener 'INTERNAL'") == 2, "it came again"


def test_closing_ends_every_connection(stub_brokers):
    notes = Notes()
    stub_brokers.start(1)
    notes.sink.deliver(brokers_of(stub_brokers, 1), {1: [numbered(1)]}, 3)
    notes.wait_confirmed((1, 3))
    notes.sink.close()
    wait_for("the connection's end", lambda: not stub_brokers[1].connected)
