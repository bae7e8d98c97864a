"""Delegation tokens: who gets them, who may log in with one, and what becomes of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.gateway import login
from streaming.gateway.delegation_tokens import TokenTerms
from streaming.gateway.server import Listener
from streaming.security.acls import Acl, AclTable, Operation, Pattern, ResourceType
from streaming.security.authorizer import AclAuthorizer
from streaming.security.delegation_tokens import DelegationToken, token_credential, token_hmac
from streaming.security.identity import Identity
from streaming.security.sasl_server import Sasl, TokenLogin
from streaming.security.scram import DIGESTS
from streaming.wire.apis import ApiKey
from tests.unit.gateway.support import TERMS, Client, FakeTokens, Rig, running
from tests.unit.security.token_client import Token, log_in

NAMED = "NAMED"
USERS = {"alice": "wonder", "bob": "builder", "carol": "sing"}
NO_RENEWERS: dict[str, Any] = {"renewers": [], "max_lifetime_ms": -1}
LATEST = {
    ApiKey.CREATE_DELEGATION_TOKEN: 3,
    ApiKey.RENEW_DELEGATION_TOKEN: 2,
    ApiKey.EXPIRE_DELEGATION_TOKEN: 2,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: 3,
}


class World:
    """A gateway whose clients have names, and tokens if they ask for some."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.tokens: FakeTokens = rig.cluster.tokens

    async def client(self, user: str) -> Client:
        client = await self.rig.client(NAMED)
        token = {"auth_bytes": f"\0{user}\0{USERS[user]}".encode()}
        await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        assert (await client.ask(ApiKey.SASL_AUTHENTICATE, 2, token))["error_code"] == 0
        return client

    async def ask(self, user: str, api: ApiKey, **body: Any) -> dict[str, Any]:
        client = await self.client(user)
        return await client.ask(api, LATEST[api], body)

    async def create(self, user: str, **body: Any) -> dict[str, Any]:
        return await self.ask(user, ApiKey.CREATE_DELEGATION_TOKEN, **{**NO_RENEWERS, **body})

    async def described(self, user: str, owners: list[str] | None = None) -> list[str]:
        named = None if owners is None else [user_of(one) for one in owners]
        answer = await self.ask(user, ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=named)
        assert answer["error_code"] == 0
        return sorted(one["principal_name"] for one in answer["tokens"])


def user_of(name: str) -> dict[str, str]:
    return {"principal_type": "User", "principal_name": name}


def with_tokens(
    scenario: Callable[[World], Awaitable[None]],
    terms: TokenTerms = TERMS,
    authorizer: AclAuthorizer | None = None,
    session_max_ms: int = 0,
) -> None:
    """Run a scenario against a gateway where users come by PLAIN, and tokens by SCRAM."""

    async def nobody(mechanism: str, user: str) -> None:
        return None

    async def run() -> None:
        kept: list[FakeTokens] = []

        async def found(mechanism: str, token_id: str) -> TokenLogin | None:
            token = kept[0].kept.get(token_id)
            if token is None:
                return None
            credential = token_credential(mechanism, token_hmac(token_id, terms.secret_key))
            identity = Identity(token.owner, by_token=True, end_ms=token.end_ms)
            return TokenLogin(credential, identity)

        token_of = found if terms.secret_key else None
        sasl = Sasl(("PLAIN", *DIGESTS), USERS, nobody, token_of, session_max_ms)
        listener = Listener(NAMED, "127.0.0.1", 0, sasl=sasl)
        async with running(
            listeners=[listener, Listener("CLIENT", "127.0.0.1", 0)],
            authorizer=authorizer,
            token_terms=terms,
        ) as rig:
            kept.append(rig.cluster.tokens)
            await scenario(World(rig))

    asyncio.run(run())


def token_of(created: dict[str, Any]) -> Token:
    return Token(created["token_id"], created["hmac"])


def error_of(answer: dict[str, Any]) -> str:
    return ProtocolError(answer["error_code"]).name


def test_a_token_is_made_for_who_asks_and_ends_as_the_cluster_says() -> None:
    async def scenario(world: World) -> None:
        before_ms = time.time_ns() // 1_000_000
        made = await world.create("alice", renewers=[user_of("bob")])
        assert (made["principal_name"], made["token_requester_principal_name"]) == ("alice",) * 2
        issued_ms = made["issue_timestamp_ms"]
        assert before_ms <= issued_ms <= time.time_ns() // 1_000_000
        assert made["expiry_timestamp_ms"] == issued_ms + TERMS.renewal_ms
        assert made["max_timestamp_ms"] == issued_ms + TERMS.max_lifetime_ms
        assert made["hmac"] == token_hmac(made["token_id"], TERMS.secret_key)
        (kept,) = world.tokens.kept.values()
        assert (kept.token_id, kept.renewers) == (made["token_id"], ("User:bob",))
        short = await world.create("alice", max_lifetime_ms=50)
        assert short["max_timestamp_ms"] == short["expiry_timestamp_ms"]
        assert short["max_timestamp_ms"] == short["issue_timestamp_ms"] + 50

    with_tokens(scenario)


@pytest.mark.parametrize("version", range(4))
def test_every_version_is_answered(version: int) -> None:
    async def scenario(world: World) -> None:
        client = await world.client("alice")
        made = await client.ask(ApiKey.CREATE_DELEGATION_TOKEN, version, NO_RENEWERS)
        assert made["principal_name"] == "alice"
        told = await client.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, version, {"owners": None})
        assert [one["hmac"] for one in told["tokens"]] == [made["hmac"]]
        older = min(version, 2)
        body = {"hmac": made["hmac"], "renew_period_ms": 1_000}
        assert (await client.ask(ApiKey.RENEW_DELEGATION_TOKEN, older, body))["error_code"] == 0
        body = {"hmac": made["hmac"], "expiry_time_period_ms": -1}
        assert (await client.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, older, body))["error_code"] == 0

    with_tokens(scenario)


@pytest.mark.parametrize("mechanism", DIGESTS)
def test_who_has_a_token_is_its_owner(mechanism: str) -> None:
    """And may ask for no more of them."""

    async def scenario(world: World) -> None:
        made = await world.create("alice")
        client = await world.rig.client(NAMED)
        answer = await log_in(client, replace(token_of(made), mechanism=mechanism))
        assert answer["error_code"] == 0
        assert 0 < answer["session_lifetime_ms"] <= TERMS.renewal_ms
        assert (await client.ask(ApiKey.METADATA, 12, {"topics": None}))["controller_id"] == 1000
        for api, body in (
            (ApiKey.CREATE_DELEGATION_TOKEN, NO_RENEWERS),
            (ApiKey.RENEW_DELEGATION_TOKEN, {"hmac": made["hmac"], "renew_period_ms": 1}),
            (ApiKey.EXPIRE_DELEGATION_TOKEN, {"hmac": made["hmac"], "expiry_time_period_ms": 1}),
            (ApiKey.DESCRIBE_DELEGATION_TOKEN, {"owners": None}),
        ):
            refused = await client.ask(api, LATEST[api], body)
            assert error_of(refused) == "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"

    with_tokens(scenario)


@pytest.mark.parametrize("wrong", [{"proof": b"guess"}, {"token_id": "nobody's"}])
def test_who_has_none_is_refused(wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "_FAILURE_DELAY_S", 0.0)

    async def scenario(world: World) -> None:
        made = await world.create("alice")
        client = await world.rig.client(NAMED)
        answer = await log_in(client, replace(token_of(made), **wrong))
        assert error_of(answer) == "SASL_AUTHENTICATION_FAILED"
        await client.wait_closed()

    with_tokens(scenario)


def test_a_user_of_a_token_s_name_is_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "_FAILURE_DELAY_S", 0.0)

    async def scenario(world: World) -> None:
        made = await world.create("alice")
        client = await world.rig.client(NAMED)
        await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "SCRAM-SHA-256"})
        first = {"auth_bytes": f"n,,n={made['token_id']},r=abc".encode()}
        answer = await client.ask(ApiKey.SASL_AUTHENTICATE, 2, first)
        assert error_of(answer) == "SASL_AUTHENTICATION_FAILED"

    with_tokens(scenario)


def test_strangers_ask_for_none() -> None:
    async def scenario(world: World) -> None:
        answer = await world.rig.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, NO_RENEWERS)
        assert error_of(answer) == "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"

    with_tokens(scenario)


def test_without_a_key_there_are_none() -> None:
    async def scenario(world: World) -> None:
        assert error_of(await world.create("alice")) == "DELEGATION_TOKEN_AUTH_DISABLED"
        answer = await world.ask("alice", ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None)
        assert error_of(answer) == "DELEGATION_TOKEN_AUTH_DISABLED"
        client = await world.rig.client(NAMED)
        answer = await log_in(client, Token("t", b"p"))
        assert error_of(answer) == "SASL_AUTHENTICATION_FAILED"

    with_tokens(scenario, replace(TERMS, secret_key=""))


def test_owner_and_renewers_renew_and_nobody_else() -> None:
    async def scenario(world: World) -> None:
        made = await world.create("alice", renewers=[user_of("bob")])

        async def renew(user: str, period_ms: int) -> dict[str, Any]:
            body = {"hmac": made["hmac"], "renew_period_ms": period_ms}
            return await world.ask(user, ApiKey.RENEW_DELEGATION_TOKEN, **body)

        now_ms = time.time_ns() // 1_000_000
        renewed = await renew("bob", 6_000)
        assert error_of(renewed) == "NONE"
        assert renewed["expiry_timestamp_ms"] >= now_ms + 6_000
        (kept,) = world.tokens.kept.values()
        assert kept.expires_ms == renewed["expiry_timestamp_ms"]
        assert (await renew("alice", 99_000))["expiry_timestamp_ms"] == made["max_timestamp_ms"]
        by_default = await renew("alice", -1)
        assert by_default["expiry_timestamp_ms"] >= now_ms + TERMS.renewal_ms
        refused = await renew("carol", 1)
        assert error_of(refused) == "DELEGATION_TOKEN_OWNER_MISMATCH"
        assert refused["expiry_timestamp_ms"] == -1
        made["hmac"] = b"guess"
        assert error_of(await renew("alice", 1)) == "DELEGATION_TOKEN_NOT_FOUND"

    with_tokens(scenario)


def test_a_token_ends_when_its_owner_says() -> None:
    async def scenario(world: World) -> None:
        made = await world.create("alice")

        async def expire(period_ms: int) -> dict[str, Any]:
            body = {"hmac": made["hmac"], "expiry_time_period_ms": period_ms}
            return await world.ask("alice", ApiKey.EXPIRE_DELEGATION_TOKEN, **body)

        assert error_of(await expire(0)) == "NONE"
        await asyncio.sleep(0.01)
        assert error_of(await expire(0)) == "DELEGATION_TOKEN_EXPIRED"
        client = await world.rig.client(NAMED)
        assert (await log_in(client, token_of(made)))["error_code"] == 0
        client.write(ApiKey.METADATA, 12, {"topics": None})  # as a broker: known, for no time
        await client.wait_closed()
        assert error_of(await expire(-1)) == "NONE"
        assert world.tokens.kept == {}
        assert error_of(await expire(-1)) == "DELEGATION_TOKEN_NOT_FOUND"

    with_tokens(scenario)


def test_only_users_renew() -> None:
    async def scenario(world: World) -> None:
        group = {"principal_type": "Group", "principal_name": "g"}
        answer = await world.create("alice", renewers=[user_of("bob"), group])
        assert error_of(answer) == "INVALID_PRINCIPAL_TYPE"
        assert (answer["principal_name"], answer["token_id"], answer["hmac"]) == ("alice", "", b"")
        assert world.tokens.kept == {}

    with_tokens(scenario)


def test_who_cannot_be_asked_now_is_no_secret() -> None:
    async def scenario(world: World) -> None:
        world.tokens.fail = OSError("away")
        assert error_of(await world.create("alice")) == "UNKNOWN_SERVER_ERROR"
        body = {"hmac": b"x", "renew_period_ms": 1}
        answer = await world.ask("alice", ApiKey.RENEW_DELEGATION_TOKEN, **body)
        assert error_of(answer) == "UNKNOWN_SERVER_ERROR"
        answer = await world.ask("alice", ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None)
        assert error_of(answer) == "UNKNOWN_SERVER_ERROR"

    with_tokens(scenario)


def rights(*, super_users: tuple[str, ...] = ()) -> AclAuthorizer:
    """Carol may make tokens of bob's and see them, and see the token t-alice."""

    def carol(operation: Operation) -> list[Acl]:
        return [Acl("User:carol", "*", operation, allowed=True)]

    lists = {
        Pattern(ResourceType.USER, "User:bob", prefixed=False): [
            *carol(Operation.CREATE_TOKENS),
            *carol(Operation.DESCRIBE_TOKENS),
        ],
        Pattern(ResourceType.DELEGATION_TOKEN, "t-alice", prefixed=False): carol(
            Operation.DESCRIBE
        ),
    }
    found = AclAuthorizer(super_users, allow_without_acls=False)
    found.take(AclTable(lists))
    return found


def test_who_may_asks_for_somebody_else() -> None:
    async def scenario(world: World) -> None:
        owner = {"owner_principal_type": "User", "owner_principal_name": "bob"}
        made = await world.create("carol", **owner)
        assert (made["principal_name"], made["token_requester_principal_name"]) == ("bob", "carol")
        refused = await world.create("alice", **owner)
        assert error_of(refused) == "DELEGATION_TOKEN_AUTHORIZATION_FAILED"
        assert (refused["principal_name"], refused["hmac"]) == ("bob", b"")
        assert len(world.tokens.kept) == 1
        client = await world.rig.client(NAMED)
        assert (await log_in(client, token_of(made)))["error_code"] == 0
        refused = await client.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, {**NO_RENEWERS, **owner})
        assert error_of(refused) == "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"

    with_tokens(scenario, authorizer=rights())


def test_everybody_sees_his_own_and_others_as_he_may() -> None:
    async def scenario(world: World) -> None:
        for name, renewers in (("alice", ()), ("bob", ("User:dave",)), ("erin", ("User:alice",))):
            token = DelegationToken(f"t-{name}", f"User:{name}", f"User:{name}", renewers, 0, 1, 2)
            await world.tokens.create(token)
        assert await world.described("alice") == ["alice", "erin"]
        assert await world.described("carol") == ["alice", "bob"]
        assert await world.described("carol", ["bob", "erin"]) == ["bob"]
        assert await world.described("carol", []) == []

    with_tokens(scenario, authorizer=rights())


def test_super_users_and_all_without_rights_see_everybodys() -> None:
    async def scenario(world: World) -> None:
        await world.create("bob")
        assert await world.described("alice") == ["bob"]
        assert await world.described("alice", ["carol"]) == []

    with_tokens(scenario, authorizer=rights(super_users=("User:alice",)))
    with_tokens(scenario)
