"""Who shows a token of an issuer is let in until the token ends: OAUTHBEARER."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import jwt
import pytest
from kafka import KafkaAdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from streaming.gateway import login
from streaming.gateway.server import Listener
from streaming.keyfiles.renewed import https_context
from streaming.security.connector import Connector
from streaming.security.oauthbearer import signing_keys
from streaming.security.oauthbearer.server import BearerServer, Expected, TokenValidator
from streaming.security.oauthbearer.signing_keys import SigningKeys
from streaming.security.ourselves import Credentials
from streaming.security.sasl_client import NotAuthenticated
from streaming.security.sasl_server import Sasl
from streaming.wire.apis import ApiKey
from streaming.wire.conversation import Conversation
from tests.fixtures.token_issuer import TokenIssuer
from tests.fixtures.waiting import wait_on_loop
from tests.unit.gateway.support import Client, Rig, with_gateway
from tests.unit.security.support import metadata

NAMED = "NAMED"
OAUTHBEARER = "OAUTHBEARER"
ANYBODY = Expected((), "", "sub", 0)
NOW_S = int(time.time())
KEYS = "/keys"


@pytest.fixture(scope="module")
def known_issuer() -> Iterator[TokenIssuer]:
    with TokenIssuer() as issuer:
        yield issuer


@pytest.fixture
def issuer(known_issuer: TokenIssuer) -> TokenIssuer:
    """One that does not fail, and was not asked anything yet."""
    known_issuer.failing = False
    known_issuer.asked.clear()
    return known_issuer


async def nobody(mechanism: str, user: str) -> None:
    return None


def with_issuer(
    issuer: TokenIssuer,
    scenario: Callable[[Rig], Awaitable[None]],
    expected: Expected = ANYBODY,
    refresh_ms: int = 3_600_000,
) -> None:
    """Run a scenario against a gateway with a listener where tokens of an issuer are taken."""
    keys = SigningKeys(issuer.keys_url, refresh_ms, https_context("", ""))
    bearer = partial(BearerServer, TokenValidator(keys, expected))
    sasl = Sasl((OAUTHBEARER,), {}, nobody, others={OAUTHBEARER: bearer})
    with_gateway(scenario, listeners=[Listener(NAMED, "127.0.0.1", 0, sasl=sasl)])


async def seen_with(rig: Rig, token: str) -> int:
    """Who somebody with a token sees as the controller."""
    (end,) = rig.gateway.endpoints()
    ours = Credentials(OAUTHBEARER, "alice", begin=partial(said_with, token))
    return int((await metadata(Connector(ours=ours), end))["controller_id"])


def said_with(token: str, _: str) -> Conversation:
    """What a client with a token says."""
    if (yield first_message(token)):
        yield b"\x01"


async def shown(client: Client, message: bytes) -> dict[str, Any]:
    """What a client is answered that says something in the place of a token."""
    await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": OAUTHBEARER})
    return await client.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": message})


def first_message(token: str, header: str = "n,,", more: str = "") -> bytes:
    return f"{header}\x01auth=Bearer {token}\x01{more}\x01".encode()


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS384", "ES256"])
def test_who_has_a_token_is_answered(issuer: TokenIssuer, algorithm: str) -> None:
    issuer.rotate(algorithm)

    async def scenario(rig: Rig) -> None:
        for user in ("alice", "bob"):
            assert await seen_with(rig, issuer.token(user)) == 1000
        assert issuer.asked[KEYS] == 1

    with_issuer(issuer, scenario)


WANTED = Expected(("kafka", "all"), "https://issuer", "name", clock_skew_s=7_200)
GOOD = {"aud": "kafka", "iss": "https://issuer", "name": "alice"}


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"aud": ["others", "all"]},
        {"sub": None},
        {"exp": NOW_S - 10},  # within what clocks may be off
        {"nbf": NOW_S + 3_600},
        {"iat": NOW_S + 20_000},
        {"exp": 10**400},
        {"exp": NOW_S + 0.5},
    ],
)
def test_a_token_says_what_is_expected(issuer: TokenIssuer, claims: dict[str, Any]) -> None:
    async def scenario(rig: Rig) -> None:
        answer = await shown(
            await rig.client(NAMED), first_message(issuer.token("x", **(GOOD | claims)))
        )
        assert (answer["error_code"], answer["auth_bytes"]) == (0, b"")

    with_issuer(issuer, scenario, WANTED)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"aud": None}, "missing the .aud. claim"),
        ({"aud": "others"}, "Audience doesn't match"),
        ({"iss": "https://elsewhere"}, "Invalid issuer"),
        ({"iss": None}, "missing the .iss. claim"),
        ({"exp": NOW_S - 8_000}, "Signature has expired"),
        ({"exp": None}, "missing the .exp. claim"),
        ({"exp": "soon"}, "must be an integer"),
        ({"exp": math.inf}, "the token is not good"),
        ({"iat": None}, "missing the .iat. claim"),
        ({"nbf": NOW_S + 20_000}, "not yet valid"),
        ({"name": None}, "claim 'name' names nobody"),
        ({"name": " "}, "claim 'name' names nobody"),
        ({"name": ["alice"]}, "claim 'name' names nobody"),
    ],
)
def test_a_token_that_does_not_is_refused_and_told_of(
    issuer: TokenIssuer, claims: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    refused(issuer, issuer.token("x", **(GOOD | claims)), reason, caplog, WANTED)


def refused(
    issuer: TokenIssuer,
    token: str,
    reason: str,
    caplog: pytest.LogCaptureFixture,
    expected: Expected = ANYBODY,
) -> None:
    """Show a token, and be refused without a reason, which is in the log."""

    async def scenario(rig: Rig) -> None:
        with pytest.raises(NotAuthenticated) as caught:
            await seen_with(rig, token)
        assert str(caught.value) == (
            "refused with OAUTHBEARER as user 'alice': Authentication failed: invalid credentials"
            " with OAUTHBEARER"
        )
        await rig.counted("closed_unauthenticated", 1)

    with_issuer(issuer, scenario, expected)
    (line,) = (one.message for one in caplog.records if one.levelno == logging.WARNING)
    assert "on NAMED: not authenticated by OAUTHBEARER: the token" in line
    assert re.search(reason, line), line
    caplog.clear()


def test_tokens_that_others_could_make_are_refused(
    issuer: TokenIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.rotate()
    (key,) = issuer.keys
    claims = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 60}
    ours = {"kid": key["kid"]}
    refused(issuer, jwt.encode(claims, "", "none", headers=ours), "for another", caplog)
    secret = str(key["n"])  # what everybody knows
    refused(issuer, jwt.encode(claims, secret, "HS256", headers=ours), "for another", caplog)
    head, _, signature = issuer.token("alice").split(".")
    forged = issuer.token("mallory").split(".")[1]
    refused(issuer, f"{head}.{forged}.{signature}", "Signature verification failed", caplog)
    with TokenIssuer() as other:
        same_name = other.token("alice", headers=ours)
        refused(issuer, same_name, "Signature verification failed", caplog)
        refused(issuer, other.token("alice"), "which is not known", caplog)
    refused(issuer, "none", "the token is none", caplog)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "not one of OAUTHBEARER"),
        (b"\xff", "not one of OAUTHBEARER"),
        (b"n,,\x01auth=Bearer t", "not one of OAUTHBEARER"),
        (b"y,,\x01auth=Bearer t\x01\x01", "not one of OAUTHBEARER"),
        (b"n,,\x01\x01", "has no token"),
        (b"n,,\x01auth=Basic t\x01\x01", "has no token"),
        (b"n,,\x01auth=Bearer t t\x01\x01", "has no token"),
    ],
)
def test_messages_that_are_none_are_refused(
    issuer: TokenIssuer, message: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: Rig) -> None:
        client = await rig.client(NAMED)
        assert (await shown(client, message))["error_code"] == 58  # SASL_AUTHENTICATION_FAILED
        await client.wait_closed()

    with_issuer(issuer, scenario)
    assert reason in caplog.text


def test_further_values_are_passed_over_and_nobody_acts_for_another(issuer: TokenIssuer) -> None:
    token = issuer.token("a,b")

    async def scenario(rig: Rig) -> None:
        for header, more, code in (
            ("n,,", "traceId=1\x01", 0),
            ("n,a=a=2Cb,", "", 0),
            ("n,a=bob,", "", 58),
        ):
            said = await shown(await rig.client(NAMED), first_message(token, header, more))
            assert said["error_code"] == code

    with_issuer(issuer, scenario)


def test_who_is_refused_hears_so_and_may_not_try_again_at_once(issuer: TokenIssuer) -> None:
    async def scenario(rig: Rig) -> None:
        for second in (b"\x01", first_message(issuer.token("alice"))):
            client = await rig.client(NAMED)
            said = await shown(client, first_message("e30.e30.e30"))
            assert (said["error_code"], said["auth_bytes"]) == (0, b'{"status":"invalid_token"}')
            said = await client.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": second})
            assert said["error_code"] == 58
            await client.wait_closed()

    with_issuer(issuer, scenario)


def test_a_session_ends_with_its_token(
    issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "_SAID_AGAIN_AFTER_S", 0.0)

    async def scenario(rig: Rig) -> None:
        client = await rig.client(NAMED)
        said = await shown(client, first_message(issuer.token("alice", exp=NOW_S + 3600)))
        assert 0 < said["session_lifetime_ms"] <= 3_600_000
        again = await shown(client, first_message(issuer.token("alice", exp=time.time() + 1.1)))
        assert 0 < again["session_lifetime_ms"] <= 1_100
        assert (await client.ask(ApiKey.METADATA, 12, {"topics": None}))["controller_id"] == 1000
        await asyncio.sleep(1.1)
        client.write(ApiKey.METADATA, 12, {"topics": None})
        await client.wait_closed()

    with_issuer(issuer, scenario)


def test_nobody_is_refused_while_keys_are_not_known(
    issuer: TokenIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: Rig) -> None:
        issuer.failing = True
        for count in (1, 2):
            with pytest.raises((OSError, EOFError)):
                await seen_with(rig, issuer.token("alice"))
            await rig.counted("closed_not_ready", count)
        issuer.failing = False
        assert await seen_with(rig, issuer.token("alice")) == 1000
        assert rig.gateway.counters["closed_unauthenticated"] == 0

    with caplog.at_level(logging.INFO, signing_keys.__name__):
        with_issuer(issuer, scenario)
    once, again = (one.message for one in caplog.records if one.name == signing_keys.__name__)
    assert f"{issuer.keys_url} answered 503" in once and again.endswith(issuer.keys_url)


def test_keys_that_were_read_count_while_the_issuer_is_away(issuer: TokenIssuer) -> None:
    async def scenario(rig: Rig) -> None:
        assert await seen_with(rig, issuer.token("alice")) == 1000
        issuer.failing = True
        assert await seen_with(rig, issuer.token("alice")) == 1000
        await wait_on_loop("another look", lambda: issuer.asked[KEYS] == 2)
        assert await seen_with(rig, issuer.token("alice")) == 1000
        # Who has a new key may be right.
        with pytest.raises((OSError, EOFError)):
            await seen_with(rig, issuer.token("alice", headers={"kid": "another"}))
        await rig.counted("closed_not_ready", 1)

    with_issuer(issuer, scenario, refresh_ms=1)


def test_a_new_key_is_asked_for_and_strangers_cannot_have_that_done_all_the_time(
    issuer: TokenIssuer,
) -> None:
    async def scenario(rig: Rig) -> None:
        async def guess(number: int) -> None:
            with pytest.raises(NotAuthenticated):
                await seen_with(rig, issuer.token("alice", headers={"kid": f"guess-{number}"}))

        assert await seen_with(rig, issuer.token("alice")) == 1000
        await asyncio.gather(*map(guess, range(10)))
        asked = issuer.asked[KEYS]
        assert 2 <= asked <= 6
        issuer.add("RS256")
        assert await seen_with(rig, issuer.token("alice")) == 1000
        assert issuer.asked[KEYS] == asked + 1

    with_issuer(issuer, scenario)


def test_keys_for_other_things_are_passed_over(
    issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.rotate()
    (signing,) = issuer.keys
    others = [signing | {"use": "enc"}, {"kty": "none"}, {}, "key", None, {"kty": "RSA", "n": 1}]
    monkeypatch.setattr(TokenIssuer, "keys", [*others, signing])

    async def scenario(rig: Rig) -> None:
        assert await seen_with(rig, issuer.token("alice")) == 1000
        assert await seen_with(rig, issuer.token("alice", headers={})) == 1000

    with_issuer(issuer, scenario)


class _Provider(AbstractTokenProvider):
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token


def test_a_client_that_is_not_ours_is_understood(issuer: TokenIssuer) -> None:
    def controller(port: int) -> int:
        admin = KafkaAdminClient(
            bootstrap_servers=f"127.0.0.1:{port}",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=OAUTHBEARER,
            sasl_oauth_token_provider=_Provider(issuer.token("alice")),
        )
        try:
            return int(admin.describe_cluster()["controller_id"])
        finally:
            admin.close()

    async def scenario(rig: Rig) -> None:
        (end,) = rig.gateway.endpoints()
        assert await asyncio.to_thread(controller, end.port) == 1000

    with_issuer(issuer, scenario)
