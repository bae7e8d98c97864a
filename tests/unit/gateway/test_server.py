"""Connections: order, limits, bad frames, slow and vanishing clients."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import threading
from collections.abc import Collection
from dataclasses import replace

import pytest

from state.protocol_errors import ProtocolError
from streaming.errors import PortTaken
from streaming.gateway import answering
from streaming.gateway.calls import Apis
from streaming.gateway.connection import Limits
from streaming.gateway.server import Gateway, Listener
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint
from streaming.wire.frames import frame
from streaming.wire.requests import Request, decode_request, encode_request
from streaming.wire.responses import decode_response
from tests.fixtures.waiting import wait_on_loop
from tests.unit.gateway.support import LISTENERS, NODE_ID, Rig, with_gateway


async def _nothing(*_: object) -> bytes:
    return b""


NO_APIS = Apis(handlers={}, passed={}, pass_on=_nothing, close=_nothing)
VERSIONS_BODY = {"client_software_name": "test", "client_software_version": "1"}
ALL_TOPICS = {"topics": None}


def test_a_client_that_sends_one_byte_at_a_time_is_answered() -> None:
    async def scenario(rig: Rig) -> None:
        client = await rig.client()
        request = frame(encode_request(ApiKey.API_VERSIONS, 4, 1, "slow", VERSIONS_BODY))
        for _ in range(2):
            for byte in request:
                client.writer.write(bytes([byte]))
                await client.writer.drain()
            correlation_id, answer = decode_response(18, 4, await client.read_frame())
            assert (correlation_id, answer["error_code"]) == (1, 0)

    with_gateway(scenario)


def test_requests_sent_without_waiting_are_answered_in_their_order() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.gate = asyncio.Event()
        client = await rig.client()
        waits = client.write(ApiKey.ALLOCATE_PRODUCER_IDS, 0, {"broker_id": 1, "broker_epoch": 101})
        sent = [client.write(ApiKey.METADATA, 1, ALL_TOPICS) for _ in range(20)]
        await rig.counted("requests_AllocateProducerIds", 1)
        assert rig.gateway.counters["requests_Metadata"] == 0
        rig.cluster.gate.set()
        first, _ = decode_response(67, 0, await client.read_frame())
        rest = [decode_response(3, 1, await client.read_frame())[0] for _ in sent]
        assert [first, *rest] == [waits, *sent]

    with_gateway(scenario)


def test_clients_that_come_all_at_once_need_not_try_again() -> None:
    async def scenario(rig: Rig) -> None:
        port = rig.gateway.endpoints()[0].port
        # The loop has no turn meanwhile: all of them must find room in the queue.
        came = [socket.create_connection(("127.0.0.1", port), timeout=0.9) for _ in range(300)]
        try:
            await rig.counted("connections_open", 300)
        finally:
            for one in came:
                one.close()

    with_gateway(scenario)


def test_one_connection_waiting_for_a_decision_does_not_hold_up_another() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.gate = asyncio.Event()
        waiting, other = await rig.client(), await rig.client()
        waiting.write(ApiKey.ALLOCATE_PRODUCER_IDS, 0, {"broker_id": 1, "broker_epoch": 101})
        await rig.counted("requests_AllocateProducerIds", 1)
        assert (await other.ask(ApiKey.METADATA, 12, ALL_TOPICS))["controller_id"] == 1000
        rig.cluster.gate.set()
        assert decode_response(67, 0, await waiting.read_frame())[1]["producer_id_len"] == 1000

    with_gateway(scenario)


def test_the_last_answer_reaches_a_client_that_closed_its_sending_side() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("big", [[1, 2, 3]] * 20_000)
        client = await rig.client()
        client.write(ApiKey.METADATA, 12, ALL_TOPICS)
        client.writer.write_eof()
        answer = decode_response(3, 12, await client.read_frame())[1]
        assert len(answer["topics"][0]["partitions"]) == 20_000
        await client.wait_closed()

    with_gateway(scenario)


BAD = {
    "negative size": (struct.pack(">i", -1), "closed_malformed"),
    "too large": (struct.pack(">i", 1025), "closed_too_large"),
    "no header": (frame(b"\x00\x03"), "closed_malformed"),
    "cut-off body": (frame(encode_request(3, 1, 1, "c", {"topics": []})[:-2]), "closed_malformed"),
    "OffsetCommit": (frame(struct.pack(">hhih", 8, 9, 1, -1)), "closed_unsupported"),
    "UpdateMetadata": (frame(struct.pack(">hhih", 6, 8, 1, -1)), "closed_unsupported"),
    "unknown API": (frame(struct.pack(">hhih", 999, 0, 1, -1)), "closed_unsupported"),
    "Metadata 13": (frame(struct.pack(">hhih", 3, 13, 1, -1)), "closed_unsupported"),
    "ListOffsets 0": (frame(struct.pack(">hhih", 2, 0, 1, -1)), "closed_unsupported"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_frame_closes_only_its_own_connection(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    data, counter = BAD[name]

    async def scenario(rig: Rig) -> None:
        good, bad = await rig.client(), await rig.client()
        await good.ask(ApiKey.METADATA, 1, ALL_TOPICS)
        bad.writer.write(data)
        await bad.wait_closed()
        assert rig.gateway.counters[counter] == 1
        await rig.counted("connections_open", 1)
        await good.ask(ApiKey.METADATA, 1, ALL_TOPICS)

    with caplog.at_level(logging.WARNING):
        with_gateway(scenario, Limits(request_max_bytes=1024))
    assert [r.message.split(": ")[0].split(":")[0] for r in caplog.records] == ["closing 127.0.0.1"]


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        client = await rig.client()
        client.writer.write(frame(struct.pack(">hhih", 18, version, 77, -1) + b"whatever"))
        correlation_id, answer = decode_response(18, 0, await client.read_frame())
        assert correlation_id == 77
        assert answer["error_code"] == ProtocolError.UNSUPPORTED_VERSION
        assert answer["api_keys"] == [{"api_key": 18, "min_version": 0, "max_version": 4}]
        again = await client.ask(ApiKey.API_VERSIONS, 4, VERSIONS_BODY)
        assert again["error_code"] == 0
        assert rig.gateway.counters["unsupported_api_versions"] == 1

    with_gateway(scenario)


def test_a_reader_that_does_not_read_is_dropped_and_others_are_served() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("wide", [[1, 2, 3]] * 40_000)
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", rig.port()))
        request = frame(encode_request(ApiKey.METADATA, 12, 1, "stuck", ALL_TOPICS))
        await asyncio.get_running_loop().sock_sendall(sock, request * 50)
        await rig.counted("closed_slow", 1)
        # One answer at a time: the other 49 requests were never taken up.
        assert rig.gateway.counters["requests_Metadata"] < 10
        assert (await rig.ask(ApiKey.METADATA, 12, {"topics": []}))["controller_id"] == 1000
        sock.close()

    with_gateway(scenario, Limits(write_timeout_ms=300))


def test_connections_over_the_quota_are_closed_until_one_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(rig: Rig) -> None:
        inside = [await rig.client(listener) for listener in ("CLIENT", "INTERNAL", "CLIENT")]
        for client in inside:
            await client.ask(ApiKey.METADATA, 1, ALL_TOPICS)
        for _ in range(5):
            await (await rig.client("INTERNAL")).wait_closed()
        assert rig.gateway.counters["connections_refused"] == 5
        await inside[0].close()
        await rig.counted("connections_open", 2)
        await (await rig.client()).ask(ApiKey.METADATA, 1, ALL_TOPICS)
        assert rig.gateway.counters["connections_accepted"] == 4

    with caplog.at_level(logging.WARNING):
        with_gateway(scenario, Limits(max_connections=3))
    assert [r.getMessage() for r in caplog.records] == [
        "refusing connections: 3 are open, which is max.connections"
    ]


def test_many_connections_at_once() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2], [2, 1]])
        clients = [await rig.client() for _ in range(300)]
        answers = await asyncio.gather(
            *(client.ask(ApiKey.METADATA, 12, ALL_TOPICS) for client in clients)
        )
        assert all(answer == answers[0] for answer in answers)
        assert rig.gateway.counters["connections_open"] == 300
        for client in clients:
            await client.close()
        await rig.counted("connections_open", 0)

    with_gateway(scenario)


def test_an_idle_connection_is_closed() -> None:
    async def scenario(rig: Rig) -> None:
        client = await rig.client()
        await client.ask(ApiKey.METADATA, 1, ALL_TOPICS)
        await client.wait_closed()
        assert rig.gateway.counters["closed_idle"] == 1

    with_gateway(scenario, Limits(idle_max_ms=1_000))


def test_waiting_for_a_decision_is_not_idling() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.gate = asyncio.Event()
        client, idle = await rig.client(), await rig.client()
        client.write(ApiKey.ALLOCATE_PRODUCER_IDS, 0, {"broker_id": 1, "broker_epoch": 101})
        await rig.counted("requests_AllocateProducerIds", 1)
        await idle.wait_closed()
        rig.cluster.gate.set()
        assert decode_response(67, 0, await client.read_frame())[1]["error_code"] == 0

    with_gateway(scenario, Limits(idle_max_ms=1_000))


def test_a_bug_in_a_handler_costs_one_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.fail = ZeroDivisionError("a bug")
        client = await rig.client()
        client.write(ApiKey.ALLOCATE_PRODUCER_IDS, 0, {"broker_id": 1, "broker_epoch": 101})
        await client.wait_closed()
        assert rig.gateway.counters["closed_failed"] == 1
        assert (await rig.ask(ApiKey.METADATA, 1, ALL_TOPICS))["controller_id"] == 1000

    with_gateway(scenario)
    assert "a bug" in caplog.text
    assert "AllocateProducerIds version 0 of client 'test', 28 bytes" in caplog.text


def test_a_long_request_keeps_no_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def decode(request: bytes, served: Collection[int]) -> Request:
        if len(request) > 100_000:
            begun.set()
            assert may_end.wait(20)
        return decode_request(request, served)

    monkeypatch.setattr(answering, "decode_request", decode)

    async def scenario(rig: Rig) -> None:
        client = await rig.client()
        names = [{"name": f"{number:07}"} for number in range(20_000)]
        asked = encode_request(ApiKey.METADATA, 1, 9, "c", {"topics": names})
        client.writer.write(frame(asked))
        await wait_on_loop("the beginning", begun.is_set)
        try:
            assert (await rig.ask(ApiKey.METADATA, 1, ALL_TOPICS))["controller_id"] == 1000
        finally:
            may_end.set()
        found = decode_response(ApiKey.METADATA, 1, await client.read_frame())
        assert len(found[1]["topics"]) == 20_000

    with_gateway(scenario)


def test_a_client_that_vanishes_while_its_request_is_decided_leaves_nothing_behind() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.gate = asyncio.Event()
        client = await rig.client()
        client.write(ApiKey.ALLOCATE_PRODUCER_IDS, 0, {"broker_id": 1, "broker_epoch": 101})
        await rig.counted("requests_AllocateProducerIds", 1)
        await client.close()
        rig.cluster.gate.set()
        await rig.counted("connections_open", 0)

    with_gateway(scenario)


def test_stopping_ends_connections_that_wait_for_a_decision() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.gate = asyncio.Event()
        client = await rig.client()
        client.write(ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": None})
        await rig.counted("requests_InitProducerId", 1)
        async with asyncio.timeout(20):
            await rig.gateway.stop()
        await client.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", rig.port())

    with_gateway(scenario)


def test_endpoints_name_each_listener_with_the_port_that_was_bound() -> None:
    async def scenario(rig: Rig) -> None:
        ends = rig.gateway.endpoints()
        assert [(e.listener, e.host) for e in ends] == [
            ("CLIENT", "127.0.0.1"),
            ("INTERNAL", "127.0.0.1"),
        ]
        assert ends[0].port != ends[1].port
        assert all(end.port > 0 and end.security_protocol == 0 for end in ends)

    with_gateway(scenario)


def test_a_taken_port_is_named_and_nothing_stays_bound() -> None:
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            listeners = [LISTENERS[0], replace(LISTENERS[1], port=port)]
            gateway = Gateway(listeners, NO_APIS, Limits())
            with pytest.raises(PortTaken, match=f"127.0.0.1:{port} is in use"):
                await gateway.start()
            (first, *_) = gateway.endpoints()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", first.port)

    asyncio.run(run())


def test_the_advertised_host_is_announced_and_answered_instead_of_the_bound_one() -> None:
    listeners = [replace(one, advertised_host="controller.example") for one in LISTENERS]

    async def scenario(rig: Rig) -> None:
        ends = [(end.listener, end.host, end.port) for end in rig.gateway.endpoints()]
        ports = {name: rig.port(name) for name in ("CLIENT", "INTERNAL")}
        assert ends == [(name, "controller.example", port) for name, port in ports.items()]
        for name, port in ports.items():
            answer = await rig.ask(ApiKey.METADATA, 1, ALL_TOPICS, name)
            (ours,) = [n for n in answer["brokers"] if n["node_id"] == NODE_ID]
            assert (ours["host"], ours["port"]) == ("controller.example", port)

    with_gateway(scenario, listeners=listeners)


def test_one_listener_name_binds_one_address() -> None:
    async def run() -> list[Endpoint]:
        gateway = Gateway([Listener("PLAINTEXT", "localhost", 0)], NO_APIS, Limits())
        await gateway.start()
        ends = gateway.endpoints()
        _, writer = await asyncio.open_connection("localhost", ends[0].port)
        writer.close()
        await gateway.stop()
        return ends

    (end,) = asyncio.run(run())
    assert end.host == "localhost"
