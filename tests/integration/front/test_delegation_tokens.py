"""Delegation tokens in a real ZooKeeper, as brokers keep them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from streaming.front import last_read
from streaming.front.delegation_tokens import ZkDelegationTokens, ignored_tokens
from streaming.security.delegation_tokens import DelegationToken
from streaming.security.identity import Identity, Undecided
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.zk.znodes.delegation_tokens import (
    TOKEN_CHANGES_PATH,
    TOKENS_PATH,
    parse_token,
    token_path,
)

TOKEN = DelegationToken("t-1", "User:a b", "User:a b", ("User:c",), 1, 2_000, 3_000)


def settings(zookeeper: str, key: str = "hush") -> Settings:
    given = [f"zookeeper.connect={zookeeper}", f"delegation.token.secret.key={key}"]
    return load_settings(overrides=given, environment={})


@pytest.fixture
def tokens(zookeeper):
    return ZkDelegationTokens(settings(zookeeper))


def run(tokens: ZkDelegationTokens, scenario: Callable) -> None:
    async def whole() -> None:
        try:
            await scenario()
        finally:
            await tokens.close()

    asyncio.run(whole())


def told(session) -> list[str]:
    names = sorted(session.children(TOKEN_CHANGES_PATH) or [])
    return [session.get(f"{TOKEN_CHANGES_PATH}/{name}").data.decode() for name in names]


def test_they_are_kept_altered_and_removed_and_brokers_are_told_each_time(zk_session, tokens):
    async def scenario() -> None:
        await tokens.create(TOKEN)
        assert parse_token(zk_session.get(token_path("t-1")).data) == TOKEN
        assert await tokens.all() == [TOKEN]
        renewed = replace(TOKEN, expires_ms=2_500)
        assert await tokens.alter("t-1", lambda one: replace(one, expires_ms=2_500)) == TOKEN
        assert await tokens.all() == [renewed]
        assert await tokens.alter("t-1", lambda one: None) == renewed
        assert await tokens.all() == []
        assert await tokens.alter("t-1", lambda one: one) is None
        assert told(zk_session) == ["t-1"] * 3

    run(tokens, scenario)


def test_who_was_slower_looks_again(zk_session, tokens):
    async def scenario() -> None:
        await tokens.create(TOKEN)
        seen: list[int] = []

        def alter(one: DelegationToken) -> DelegationToken:
            seen.append(one.expires_ms)
            if len(seen) == 1:
                meanwhile = zk_session.get(token_path("t-1"))
                zk_session.set(token_path("t-1"), meanwhile.data.replace(b"2000", b"2100"))
            return replace(one, expires_ms=one.expires_ms + 1)

        await tokens.alter("t-1", alter)
        assert seen == [2_000, 2_100]
        assert [one.expires_ms for one in await tokens.all()] == [2_101]

    run(tokens, scenario)


def test_what_is_raised_alters_nothing(zk_session, tokens):
    def refuse(one: DelegationToken) -> None:
        raise LookupError(one.owner)

    async def scenario() -> None:
        await tokens.create(TOKEN)
        with pytest.raises(LookupError, match="User:a b"):
            await tokens.alter("t-1", refuse)
        assert await tokens.all() == [TOKEN]
        assert told(zk_session) == ["t-1"]

    run(tokens, scenario)


def test_what_cannot_be_read_costs_itself_only(zk_session, tokens, caplog):
    async def scenario() -> None:
        assert await tokens.all() == []
        await tokens.create(TOKEN)
        zk_session.create(token_path("broken"), b"{}")
        zk_session.create(token_path("other"), zk_session.get(token_path("t-1")).data)
        assert await tokens.all() == [TOKEN]
        with pytest.raises(OSError, match="not changed"):
            await tokens.alter("broken", lambda one: None)
        with pytest.raises(Undecided):
            await tokens.find("SCRAM-SHA-256", "broken")

    run(tokens, scenario)
    assert f"{TOKENS_PATH}/other is passed over: it is about token 't-1'" in caplog.text


def test_who_logs_in_is_the_owner_for_as_long_as_the_token_is_good(zk_session, tokens):
    async def scenario() -> None:
        await tokens.create(TOKEN)
        found = await tokens.find("SCRAM-SHA-512", "t-1")
        assert found is not None
        assert found.identity == Identity("User:a b", by_token=True, end_ms=2_000)
        assert "salt" not in repr(found)
        again = await tokens.find("SCRAM-SHA-512", "t-1")
        assert again is not None and again.credential is found.credential
        for nobody in ("t-2", "../t-1", "t-1/x", "..", "\0", "t-1\n"):
            assert await tokens.find("SCRAM-SHA-512", nobody) is None

    run(tokens, scenario)


def test_without_zookeeper_what_was_read_last_is_good(zookeeper_server):
    tokens = ZkDelegationTokens(settings(zookeeper_server.connect_string))

    async def scenario() -> None:
        await tokens.create(TOKEN)
        before = await tokens.find("SCRAM-SHA-256", "t-1")
        await asyncio.to_thread(zookeeper_server.stop)
        assert await tokens.find("SCRAM-SHA-256", "t-1") == before
        with pytest.raises(Undecided):
            await tokens.find("SCRAM-SHA-256", "t-2")
        with pytest.raises(OSError, match="cannot be read"):
            await tokens.all()

    run(tokens, scenario)


def test_what_nobody_asks_for_is_not_kept_for_ever(zookeeper_server, monkeypatch):
    monkeypatch.setattr(last_read, "_KEPT_MAX", 2)
    tokens = ZkDelegationTokens(settings(zookeeper_server.connect_string))

    async def scenario() -> None:
        names = ["t-1", "t-2", "t-3"]
        for name in names:
            await tokens.create(replace(TOKEN, token_id=name))
        for name in ("t-1", "t-2", "t-1", "t-3"):
            assert await tokens.find("SCRAM-SHA-256", name) is not None
        await asyncio.to_thread(zookeeper_server.stop)
        for name in ("t-1", "t-3"):
            assert await tokens.find("SCRAM-SHA-256", name) is not None
        with pytest.raises(Undecided):
            await tokens.find("SCRAM-SHA-256", "t-2")

    run(tokens, scenario)


def test_who_has_no_key_where_there_are_tokens_is_told(zk_session, zookeeper, tokens):
    assert ignored_tokens(zk_session, settings(zookeeper, "")) is None
    run(tokens, lambda: tokens.create(TOKEN))
    said = ignored_tokens(zk_session, settings(zookeeper, ""))
    assert said is not None and "set delegation.token.secret.key" in said
    assert ignored_tokens(zk_session, settings(zookeeper)) is None
