"""Credentials as they are in ZooKeeper, and who asks for which."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from streaming.gateway.calls import HangUp, NotAuthenticated
from streaming.gateway.login import Login
from streaming.security.identity import Refused, Undecided
from streaming.security.sasl_server import Sasl, ScramServer
from streaming.security.scram import (
    DIGESTS,
    ScramCredential,
    credential_text,
    parse_credential,
)
from streaming.wire.apis import ApiKey
from streaming.wire.requests import encode_request
from tests.unit.security.support import credential


class Fast:
    """Answers everybody at once."""

    listener = None

    def at_once(self, *_: Any) -> bytes:
        return b"answer"

    def try_answer(self, *_: Any) -> bool:
        return True


def login_to(sasl: Sasl) -> Login:
    """A login in front of who answers at once."""
    fast: Any = Fast()
    return Login(fast, sasl, lambda *_: fast)


async def away(mechanism: str, user: str) -> ScramCredential | None:
    raise Undecided(f"{mechanism} of {user}: nobody is there")


def test_nobody_is_answered_quickly_before_it_is_known_who_asks() -> None:
    login = login_to(Sasl(("PLAIN",), {"alice": "wonder"}, away))

    async def scenario() -> None:
        for api, body in (
            (ApiKey.SASL_HANDSHAKE, {"mechanism": "PLAIN"}),
            (ApiKey.SASL_AUTHENTICATE, {"auth_bytes": b"\0alice\0wonder"}),
        ):
            assert login.at_once(ApiKey.HEARTBEAT, b"") is None
            assert not login.try_answer(ApiKey.JOIN_GROUP, b"", "/host", lambda _: None)
            await login.answer(encode_request(api, 1, 1, "c", body))
        assert login.at_once(ApiKey.HEARTBEAT, b"") == b"answer"
        assert login.try_answer(ApiKey.JOIN_GROUP, b"", "/host", lambda _: None)

    asyncio.run(scenario())


def test_who_cannot_be_looked_up_is_hung_up_on_and_not_refused() -> None:
    login = login_to(Sasl(("SCRAM-SHA-256",), {}, away))

    async def scenario() -> None:
        handshake = {"mechanism": "SCRAM-SHA-256"}
        await login.answer(encode_request(ApiKey.SASL_HANDSHAKE, 1, 1, "c", handshake))
        first = {"auth_bytes": b"n,,n=alice,r=abc"}
        with pytest.raises(HangUp, match="nobody is there") as caught:
            await login.answer(encode_request(ApiKey.SASL_AUTHENTICATE, 2, 2, "c", first))
        assert not isinstance(caught.value, NotAuthenticated) and caught.value.answer is None

    asyncio.run(scenario())


def test_nobody_is_asked_about_who_has_a_long_name() -> None:
    server = ScramServer("SCRAM-SHA-256", away)
    with pytest.raises(Refused, match="a long name"):
        asyncio.run(server.respond(b"n,,n=" + b"/" * 1_001 + b",r=abc"))
    with pytest.raises(Undecided):
        asyncio.run(server.respond(b"n,,n=" + b"/" * 1_000 + b",r=abc"))


@pytest.mark.parametrize("mechanism", DIGESTS)
def test_credentials_are_written_as_they_are_read(mechanism: str) -> None:
    one = credential(mechanism, os.urandom(8).hex())
    assert parse_credential(credential_text(one)) == one
    assert "salt" not in repr(one)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "salt=YQ==",
        "a=b,c",
        "salt=?,stored_key=YQ==,server_key=YQ==,iterations=1",
        "salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=x",
    ],
)
def test_credentials_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"a credential|invalid literal"):
        parse_credential(text)
