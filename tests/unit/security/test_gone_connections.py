"""Nothing is left of a connection that has ended: nobody looks for cycles of what lived so long."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from streaming.gateway.calls import Call, HangUp
from streaming.gateway.connection import Connection, Limits
from streaming.gateway.handshake import Handshake
from streaming.security.connector import Connector
from streaming.security.identity import Refused
from streaming.wire.apis import ApiKey
from streaming.wire.schema_codec import Body
from tests.fixtures.waiting import wait_on_loop
from tests.unit.gateway.support import Client, Rig, with_gateway
from tests.unit.security.support import ALL_TOPICS, Files, metadata, secured
from tests.unit.security.test_builders import Builder, built
from tests.unit.security.test_delegation_tokens import World, with_tokens

GONE_S = 20.0
ALLOCATION = {"broker_id": 1, "broker_epoch": 101}


pytestmark = pytest.mark.usefixtures("no_cycles_are_looked_for")


@pytest.fixture(autouse=True)
def nothing_is_logged() -> Iterator[None]:
    """Pytest keeps what is logged, and what it is about."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def left() -> int:
    return sum(isinstance(one, Connection | Handshake) for one in gc.get_objects())


async def all_are_gone() -> None:
    await wait_on_loop("connections that are gone", lambda: not left(), GONE_S)


async def answered(rig: Rig) -> Client:
    client = await rig.client()
    await client.ask(ApiKey.METADATA, 12, ALL_TOPICS)
    return client


def test_who_was_answered_and_leaves() -> None:
    async def scenario(rig: Rig) -> None:
        client = await answered(rig)
        assert left() == 1
        await client.close()
        await all_are_gone()

    with_gateway(scenario)


def test_who_is_hung_up_on() -> None:
    async def scenario(rig: Rig) -> None:
        client = await answered(rig)
        client.writer.write(b"\xff" * 8)
        await client.wait_closed()
        await all_are_gone()

    with_gateway(scenario)


def test_who_leaves_while_its_answer_is_awaited() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.gate = asyncio.Event()
        client = await answered(rig)
        client.write(ApiKey.ALLOCATE_PRODUCER_IDS, 0, ALLOCATION)
        await rig.counted("requests_AllocateProducerIds", 1)
        await client.close()
        await asyncio.sleep(0.05)
        assert left() == 1, "its request is under way"
        rig.cluster.gate.set()
        await all_are_gone()

    with_gateway(scenario)


def test_whose_request_fails_in_a_future_of_a_handler() -> None:
    async def fails(_: Call) -> Body:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(HangUp("no answer"))
        return await future

    async def scenario(rig: Rig) -> None:
        handlers: Any = rig.gateway._apis.handlers
        handlers[ApiKey.METADATA] = fails
        client = await rig.client()
        client.write(ApiKey.METADATA, 12, ALL_TOPICS)
        await client.wait_closed()
        await all_are_gone()

    with_gateway(scenario)


def test_who_has_a_name_by_a_builder_and_who_has_none() -> None:
    builder = Builder()

    async def scenario(rig: Rig) -> None:
        client = await answered(rig)
        await client.close()
        builder.fails = Refused
        client = await rig.client()
        client.write(ApiKey.METADATA, 12, ALL_TOPICS)
        await client.wait_closed()
        await all_are_gone()

    built(scenario, builder)


def test_who_does_not_read() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("big", [[1, 2, 3]] * 50_000)
        slow = await answered(rig)
        for _ in range(20):
            slow.write(ApiKey.METADATA, 12, ALL_TOPICS)
        await rig.counted("closed_slow", 1)
        await all_are_gone()

    with_gateway(scenario, Limits(write_timeout_ms=50))


def test_who_is_silent() -> None:
    async def scenario(rig: Rig) -> None:
        await answered(rig)
        await rig.counted("closed_idle", 1)
        await all_are_gone()

    with_gateway(scenario, Limits(idle_max_ms=300))


def test_who_came_in_tls(files: Files) -> None:
    given = files.settings()

    async def scenario(rig: Rig) -> None:
        (end,) = rig.gateway.endpoints()
        await metadata(Connector.of(given), end)
        await all_are_gone()

    secured(scenario, given)


def test_whose_handshake_fails(files: Files) -> None:
    given = files.settings()

    async def scenario(rig: Rig) -> None:
        (end,) = rig.gateway.endpoints()
        strange = Connector.of(files.settings(signed_by=files.stranger))
        with pytest.raises((OSError, EOFError)):
            await metadata(strange, end)
        await rig.counted("closed_handshake", 1)
        await all_are_gone()

    secured(scenario, given)


def test_who_said_who_it_is() -> None:
    async def scenario(world: World) -> None:
        client = await world.client("alice")
        await client.ask(ApiKey.METADATA, 12, ALL_TOPICS)
        await client.close()
        await all_are_gone()

    with_tokens(scenario)
