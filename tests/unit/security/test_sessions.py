"""Sessions that end: who logs in again in time goes on, as whoever it was (KIP-368)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.gateway import login
from streaming.security.identity import Identity
from streaming.security.sasl_server import Sasl
from streaming.wire.apis import ApiKey
from tests.unit.gateway.support import Client
from tests.unit.security.test_delegation_tokens import NAMED, World, token_of, with_tokens
from tests.unit.security.token_client import log_in

METADATA = {"topics": None}


async def nobody(mechanism: str, user: str) -> None:
    return None


async def say_again(client: Client, user: str, password: str) -> dict[str, Any]:
    handshake = await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    if handshake["error_code"]:
        return handshake
    token = {"auth_bytes": f"\0{user}\0{password}".encode()}
    return await client.ask(ApiKey.SASL_AUTHENTICATE, 2, token)


@pytest.mark.parametrize(
    ("end_ms", "session_max_ms", "lasts_ms"),
    [
        (None, 0, None),
        (None, 500, 500),
        (1_300, 0, 300),
        (1_300, 500, 300),
        (1_300, 200, 200),
        (900, 500, 0),
    ],
)
def test_a_session_lasts_until_its_first_end(
    end_ms: int | None, session_max_ms: int, lasts_ms: int | None
) -> None:
    sasl = Sasl(("PLAIN",), {}, nobody, session_max_ms=session_max_ms)
    assert sasl.session_ms(Identity("User:u", end_ms=end_ms), 1_000) == lasts_ms


def test_who_does_not_log_in_again_is_hung_up_on() -> None:
    async def scenario(world: World) -> None:
        client = await world.client("alice")
        assert (await client.ask(ApiKey.METADATA, 12, METADATA))["controller_id"] == 1000
        await asyncio.sleep(0.3)
        client.write(ApiKey.METADATA, 12, METADATA)
        await client.wait_closed()
        await world.rig.counted("closed_refused", 1)

    with_tokens(scenario, session_max_ms=250)


def test_who_logs_in_again_goes_on() -> None:
    async def scenario(world: World) -> None:
        client = await world.client("alice")
        await asyncio.sleep(0.3)  # too late for anything else, but not for this
        again = await say_again(client, "alice", "wonder")
        assert (again["error_code"], again["session_lifetime_ms"]) == (0, 250)
        assert (await client.ask(ApiKey.METADATA, 12, METADATA))["controller_id"] == 1000
        at_once = await say_again(client, "alice", "wonder")
        assert ProtocolError(at_once["error_code"]).name == "ILLEGAL_SASL_STATE"
        await asyncio.sleep(0.3)
        client.write(ApiKey.METADATA, 12, METADATA)
        await client.wait_closed()

    with_tokens(scenario, session_max_ms=250)


def test_nobody_becomes_somebody_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(login, "_FAILURE_DELAY_S", 0.0)

    async def scenario(world: World) -> None:
        client = await world.client("alice")
        again = await say_again(client, "bob", "builder")
        assert ProtocolError(again["error_code"]).name == "SASL_AUTHENTICATION_FAILED"
        await client.wait_closed()
        client = await world.client("alice")
        client.write(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "SCRAM-SHA-256"})
        await client.wait_closed()

    with_tokens(scenario, session_max_ms=60_000)
    assert "User:alice has become User:bob" in caplog.text
    assert "who came by PLAIN logs in again by SCRAM-SHA-256" in caplog.text


def test_a_token_that_was_renewed_is_good_for_another_session() -> None:
    async def scenario(world: World) -> None:
        made = await world.create("alice")
        client = await world.rig.client(NAMED)
        first = (await log_in(client, token_of(made)))["session_lifetime_ms"]
        body = {"hmac": made["hmac"], "renew_period_ms": 9_000}
        await world.ask("alice", ApiKey.RENEW_DELEGATION_TOKEN, **body)
        again = await log_in(client, token_of(made))
        assert again["error_code"] == 0
        assert again["session_lifetime_ms"] > first

    with_tokens(scenario)
