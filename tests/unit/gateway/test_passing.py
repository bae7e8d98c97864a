"""Requests that a broker answers for us: which, by whom, and what happens when it cannot."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable

import pytest

from state.protocol_errors import ProtocolError
from streaming.gateway.passing import versions
from streaming.gateway.passing.apis import PASSED_VERSIONS
from streaming.gateway.passing.pool import BrokerFailed, BrokerPool, PassingLimits, Target
from streaming.security.connector import Connector
from streaming.wire.apis import ApiKey
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from tests.fixtures.endpoints import plain_endpoint
from tests.fixtures.waiting import wait_on_loop
from tests.unit.gateway.answering_broker import (
    RANGES,
    AnsweringBroker,
    answering,
    ask_raw,
    brokers,
    ranges_of,
)
from tests.unit.gateway.support import CLUSTER_ID, NODE_ID, Rig, with_gateway

DESCRIBE_ACLS, DESCRIBE_QUOTAS = 29, 48
BODY = b"whatever the client says \x00\xff"


def raw(api_key: int, correlation_id: int, body: bytes = BODY) -> bytes:
    return struct.pack(">hhi", api_key, 1, correlation_id) + body


async def echo(request: bytes) -> bytes:
    """The correlation id, and all of the request again."""
    return request[4:8] + request


def test_a_request_is_passed_on_as_it_is_under_an_id_of_ours() -> None:
    async def scenario(rig: Rig) -> None:
        stub = AnsweringBroker(1, answer=echo)
        async with brokers(rig, stub):
            for correlation_id in (77, 78, 2**31 - 1, -5):
                answer = await ask_raw(rig, raw(DESCRIBE_ACLS, correlation_id))
                assert answer[:4] == struct.pack(">i", correlation_id)
                [passed] = stub.requests
                stub.requests.clear()
                assert passed[:4] + passed[8:] == struct.pack(">hh", DESCRIBE_ACLS, 1) + BODY
                assert answer[4:] == passed
            assert rig.gateway.counters["requests_DescribeAcls"] == 4
            assert stub.connections == 1

    with_gateway(scenario)


def test_brokers_take_turns_and_one_that_is_away_is_passed_over() -> None:
    async def scenario(rig: Rig) -> None:
        stubs = [AnsweringBroker(id_, answer=echo) for id_ in (1, 2, 3)]
        async with brokers(rig, *stubs):
            for correlation_id in range(6):
                await ask_raw(rig, raw(DESCRIBE_ACLS, correlation_id))
            assert [len(stub.requests) for stub in stubs] == [2, 2, 2]
            await stubs[1].stop()
            for correlation_id in range(6):
                await ask_raw(rig, raw(DESCRIBE_ACLS, correlation_id))
            assert len(stubs[0].requests) + len(stubs[2].requests) == 10

    with_gateway(scenario)


async def closed(rig: Rig, request: bytes) -> None:
    before = rig.gateway.counters["closed_refused"]
    with pytest.raises(EOFError):
        await ask_raw(rig, request)
    assert rig.gateway.counters["closed_refused"] == before + 1


def test_without_an_answer_the_connection_closes_and_nobody_else_is_asked() -> None:
    async def scenario(rig: Rig) -> None:
        async def hang_up(_: bytes) -> None:
            return None

        async def other_id(request: bytes) -> bytes:
            return b"\x7f" + request[5:8]

        async def too_short(_: bytes) -> bytes:
            return b"\x00"

        stubs = [AnsweringBroker(id_) for id_ in (1, 2)]
        async with brokers(rig, *stubs):
            for broken in (hang_up, other_id, too_short):
                for stub in stubs:
                    stub.requests.clear()
                    stub.answer = broken
                await closed(rig, raw(DESCRIBE_QUOTAS, 1))
                assert sum(len(stub.requests) for stub in stubs) == 1

    with_gateway(scenario)


def test_without_a_broker_the_connection_closes() -> None:
    async def scenario(rig: Rig) -> None:
        async with brokers(rig, AnsweringBroker(1)):
            pass
        await closed(rig, raw(DESCRIBE_ACLS, 1))  # its port is closed
        rig.cluster.happen("broker_registrations_changed", "", {"unregistered": [1]})
        await closed(rig, raw(DESCRIBE_ACLS, 1))
        rig.cluster.has_image = False
        await closed(rig, raw(DESCRIBE_ACLS, 1))

    with_gateway(scenario)


def test_a_broker_is_forgotten_with_its_registration() -> None:
    async def scenario(rig: Rig) -> None:
        stub = AnsweringBroker(1, answer=echo)
        async with brokers(rig, stub):
            await ask_raw(rig, raw(DESCRIBE_ACLS, 1))
            body = {"updated": [stub.registration(epoch=200)]}
            rig.cluster.happen("broker_registrations_changed", "", body)
            await ask_raw(rig, raw(DESCRIBE_ACLS, 1))
            assert stub.connections == 2

    with_gateway(scenario)


async def ranges(rig: Rig) -> dict[int, tuple[int, int]]:
    return ranges_of(await ask_raw(rig, encode_request(ApiKey.API_VERSIONS, 0, 1, None, {})))


SHARED = {32, 33, 44}


def test_passed_apis_are_advertised_in_the_versions_that_all_brokers_and_we_know() -> None:
    async def scenario(rig: Rig) -> None:
        everything = await ranges(rig)  # no broker is known
        assert everything[29] == PASSED_VERSIONS[29]
        served = {k: v for k, v in everything.items() if k not in PASSED_VERSIONS.keys() | SHARED}
        old = AnsweringBroker(1, ranges=RANGES | {29: (0, 2), 32: (0, 3), 44: (5, 9)})
        new = AnsweringBroker(2, ranges=RANGES | {29: (1, 9), 50: (0, 0)})
        async with brokers(rig, old, new):
            shared = {29: (1, 2), 32: (0, 3), 33: (0, 2), 48: (0, 1)}
            assert await ranges(rig) == served | shared
            assert old.connections == new.connections == 1
            assert await ranges(rig) == served | shared
            assert old.connections == new.connections == 1
            rig.cluster.happen("broker_registrations_changed", "", {"unregistered": [1]})
            alone = shared | {29: (1, 3), 32: (0, 4), 44: (0, 1), 50: (0, 0)}
            assert await ranges(rig) == served | alone

    with_gateway(scenario)


def test_what_all_brokers_serve_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every new connection asks for it."""
    worked_out = []

    def noted(tables: list[versions.Ranges]) -> versions.Ranges:
        worked_out.append(len(tables))
        return common_ranges(tables)

    common_ranges = versions.common_ranges
    monkeypatch.setattr(versions, "common_ranges", noted)

    async def scenario(rig: Rig) -> None:
        async with brokers(rig, AnsweringBroker(1), AnsweringBroker(2)):
            await ranges(rig)
            worked_out.clear()
            for _ in range(5):
                await ranges(rig)
            assert worked_out == [2]
            rig.cluster.happen("broker_registrations_changed", "", {"unregistered": [1]})
            await ranges(rig)
            assert worked_out == [2, 1]

    with_gateway(scenario)


def test_a_broker_that_does_not_tell_its_versions_counts_for_nothing() -> None:
    async def scenario(rig: Rig) -> None:
        there, away = AnsweringBroker(1), AnsweringBroker(2)
        async with brokers(rig, there, away):
            await away.stop()
            found = await ranges(rig)
            assert found.keys() & (PASSED_VERSIONS.keys() | SHARED) == {29, 32, 33, 44, 48}

    with_gateway(scenario)


def run(scenario: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await scenario

    asyncio.run(bounded())


def target(stub: AnsweringBroker) -> Target:
    return Target(stub.id, 1, plain_endpoint("127.0.0.1", stub.port))


def test_no_more_connections_than_allowed_and_the_others_wait_for_their_turn() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()

        async def slow(request: bytes) -> bytes:
            await gate.wait()
            return await echo(request)

        stub = AnsweringBroker(1, answer=slow)
        await stub.start()
        pool = BrokerPool(target(stub), PassingLimits(connections_max=2), Connector())
        asked = [asyncio.create_task(pool.exchange(raw(29, id_))) for id_ in range(5)]
        await wait_on_loop("the requests", lambda: len(stub.requests) >= 2)
        gate.set()
        answers = await asyncio.gather(*asked)
        assert len(answers) == 5
        assert stub.connections == 2
        pool.close()
        await stub.stop()

    run(scenario())


def test_a_broker_that_hung_up_while_nothing_was_asked_is_connected_to_again() -> None:
    async def scenario() -> None:
        stub = AnsweringBroker(1, answer=echo)
        await stub.start()
        pool = BrokerPool(target(stub), PassingLimits(), Connector())
        await pool.exchange(raw(DESCRIBE_ACLS, 1))
        [idle] = pool._idle
        stub.hang_up()
        await wait_on_loop("the connection's end", idle._reader.at_eof)
        await pool.exchange(raw(DESCRIBE_ACLS, 2))
        assert stub.connections == 2
        pool.close()
        await stub.stop()

    run(scenario())


LATE = PassingLimits(answer_timeout_s=1.0)


@pytest.mark.parametrize(
    "limits",
    [LATE, PassingLimits(answer_max_bytes=10)],
    ids=["late", "large"],
)
def test_answers_that_are_late_or_large_are_failures_and_close_their_connection(
    limits: PassingLimits,
) -> None:
    async def scenario() -> None:
        async def answer(request: bytes) -> bytes:
            if limits is LATE:
                await asyncio.sleep(30)
            return await echo(request)

        stub = AnsweringBroker(1, answer=answer)
        await stub.start()
        pool = BrokerPool(target(stub), limits, Connector())
        for connections in (1, 2):
            with pytest.raises(BrokerFailed, match="broker 1 at ") as caught:
                await pool.exchange(raw(29, 1))
            assert caught.value.asked
            assert stub.connections == connections
        await stub.stop()

    run(scenario())


def test_a_refused_connection_is_not_a_question_asked() -> None:
    async def scenario() -> None:
        stub = AnsweringBroker(1)
        await stub.start()
        await stub.stop()
        pool = BrokerPool(target(stub), PassingLimits(), Connector())
        with pytest.raises(BrokerFailed, match="cannot be reached") as caught:
            await pool.exchange(raw(29, 1))
        assert not caught.value.asked

    run(scenario())


@pytest.mark.parametrize(
    ("api_key", "version"), [(ApiKey.METADATA, 1), (ApiKey.DESCRIBE_CLUSTER, 0)]
)
def test_without_the_role_a_broker_tells_who_controls(api_key: int, version: int) -> None:
    async def scenario(rig: Rig) -> None:
        named = [NODE_ID, NODE_ID]
        first = answering(ApiKey.METADATA, controller_id=lambda _: named[0])
        second = answering(ApiKey.METADATA, api_key, controller_id=lambda _: named[1])
        stubs = [AnsweringBroker(1, answer=first), AnsweringBroker(2, answer=second)]
        async with brokers(rig, *stubs):

            async def controller() -> int:
                body = {"topics": []} if api_key == ApiKey.METADATA else {}
                raw_answer = await ask_raw(rig, encode_request(api_key, version, 5, "c", body))
                return int(decode_response(api_key, version, raw_answer)[1]["controller_id"])

            assert await controller() == NODE_ID
            assert not stubs[0].requests + stubs[1].requests
            rig.cluster.controller = False
            assert await controller() == -1  # both name this node, which knows better
            named[:] = [2, 2]
            for stub in stubs:
                stub.requests.clear()
            assert await controller() == 2
            assert len(stubs[1].requests) > 0
            for stub in stubs:
                await stub.stop()
            assert await controller() == -1

    with_gateway(scenario)


@pytest.mark.parametrize("api_key", [ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER])
def test_after_another_controller_any_broker_tells_though_it_may_name_us(api_key: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.overtaken = True
        stub = AnsweringBroker(
            1, answer=answering(api_key, cluster_id="told", controller_id=NODE_ID)
        )
        body = {"topics": []} if api_key == ApiKey.METADATA else {}
        version = 2 if api_key == ApiKey.METADATA else 0
        async with brokers(rig, stub):
            told = await rig.ask(api_key, version, body)
            assert (told["cluster_id"], told["controller_id"]) == ("told", NODE_ID)
            rig.cluster.overtaken = False
            assert (await rig.ask(api_key, version, body))["cluster_id"] == CLUSTER_ID

    with_gateway(scenario)


@pytest.mark.parametrize("lost", [{"controller": False}, {"overtaken": True}])
@pytest.mark.parametrize("key_type", [0, 1])
@pytest.mark.parametrize("version", [1, 4])
def test_a_broker_finds_coordinators_while_we_do_not_know_who_leads(
    version: int, key_type: int, lost: dict[str, bool]
) -> None:
    async def scenario(rig: Rig) -> None:
        for topic in ("__consumer_offsets", "__transaction_state"):
            rig.cluster.create(topic, [[1, 2]])
        found = {"error_code": 0, "node_id": 2, "host": "there", "port": 9}
        fields = {"coordinators": [found | {"key": "a"}]} if version >= 4 else found
        stub = AnsweringBroker(1, answer=answering(ApiKey.FIND_COORDINATOR, **fields))
        body = {"key": "a", "key_type": key_type, "coordinator_keys": ["a"]}

        async def coordinator() -> tuple[int, int]:
            answer = await rig.ask(ApiKey.FIND_COORDINATOR, version, body)
            one = answer["coordinators"][0] if version >= 4 else answer
            return one["error_code"], one["node_id"]

        async with brokers(rig, stub):
            assert await coordinator() == (0, 1)
            assert not stub.requests
            vars(rig.cluster).update(lost)
            assert await coordinator() == (0, 2)
            await stub.stop()
            assert await coordinator() == (ProtocolError.COORDINATOR_NOT_AVAILABLE, -1)

    with_gateway(scenario)


@pytest.mark.parametrize(
    "api_key", [ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER, ApiKey.FIND_COORDINATOR]
)
def test_versions_of_what_may_be_passed_on_are_those_that_brokers_know(api_key: int) -> None:
    async def scenario(rig: Rig) -> None:
        async with brokers(rig, AnsweringBroker(1, {**RANGES, api_key: (0, 0)})):
            answer = await ask_raw(rig, encode_request(ApiKey.API_VERSIONS, 0, 1, "c", {}))
            assert ranges_of(answer)[api_key] == (0, 0)

    with_gateway(scenario)
