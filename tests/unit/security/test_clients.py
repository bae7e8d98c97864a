"""As whom clients of a listener are judged: by certificate, by name, or as nobody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from streaming.gateway.server import Listener
from streaming.security.acls import ANY, Acl, AclTable, Operation, Pattern, ResourceType
from streaming.security.authorizer import AclAuthorizer
from streaming.security.connector import Connector
from streaming.security.ourselves import Credentials
from streaming.security.sasl_server import Sasl
from streaming.security.tls import client_context, server_context
from tests.unit.gateway.support import Rig, running
from tests.unit.security.support import SECURE, Files, metadata

USERS = {"alice": "wonder", "bob": "build"}


async def nobody(_: str, __: str) -> None:
    return None


def judged(
    scenario: Callable[[Rig], Awaitable[None]],
    principal: str,
    listener: Listener,
    rules: str = "DEFAULT",
    host: str = ANY,
) -> None:
    """Run a scenario where a principal, and nobody else, sees the only topic."""
    authorizer = AclAuthorizer((), allow_without_acls=False)
    mine = [Acl(principal, host, Operation.DESCRIBE, True)]
    authorizer.take(AclTable({Pattern(ResourceType.TOPIC, ANY, prefixed=False): mine}))

    async def run() -> None:
        async with running(listeners=[listener], authorizer=authorizer, rules=rules) as rig:
            rig.cluster.create("t", [[1]])
            await scenario(rig)

    asyncio.run(run())


async def seen(rig: Rig, connector: Connector) -> int:
    """How many topics somebody sees."""
    (end,) = rig.gateway.endpoints()
    return len((await metadata(connector, end))["topics"])


def plain(**options: Any) -> Listener:
    return Listener("PLAIN", "127.0.0.1", 0, **options)


def test_who_says_nothing_is_anonymous() -> None:
    async def scenario(rig: Rig) -> None:
        assert await seen(rig, Connector()) == 1

    judged(scenario, "User:ANONYMOUS", plain(), host="127.0.0.1")


def test_who_comes_from_elsewhere_is_another_one() -> None:
    async def scenario(rig: Rig) -> None:
        assert await seen(rig, Connector()) == 0

    judged(scenario, "User:ANONYMOUS", plain(), host="127.0.0.2")


def test_a_user_is_judged_by_the_name_it_logs_in_with() -> None:
    async def scenario(rig: Rig) -> None:
        found = [
            await seen(rig, Connector(ours=Credentials("PLAIN", user, password)))
            for user, password in USERS.items()
        ]
        assert found == [0, 1]

    judged(scenario, "User:bob", plain(sasl=Sasl(("PLAIN",), USERS, nobody)))


def trusting(files: Files, name: str) -> tuple[Listener, Connector]:
    """A listener in TLS, and somebody who shows a certificate with a name."""
    given = files.settings()
    listener = Listener(SECURE, "127.0.0.1", 0, tls=server_context(given))
    key = files.authority.keystore(name)
    return listener, Connector(client_context(files.settings(f"ssl.keystore.location={key}")))


def test_a_certificate_is_judged_by_what_rules_make_of_its_name(files: Files) -> None:
    listener, alice = trusting(files, "Alice")

    async def scenario(rig: Rig) -> None:
        assert await seen(rig, alice) == 1
        assert await seen(rig, trusting(files, "Bob")[1]) == 0

    judged(scenario, "User:alice", listener, "RULE:^CN=(.*?),.*$/$1/L")


def test_in_tls_a_user_is_judged_by_its_name_and_not_its_certificate(files: Files) -> None:
    given = files.settings()
    listener = plain(tls=server_context(given, sasl=True), sasl=Sasl(("PLAIN",), USERS, nobody))
    bob = Connector(client_context(given), Credentials("PLAIN", "bob", "build"))

    async def scenario(rig: Rig) -> None:
        assert await seen(rig, bob) == 1

    judged(scenario, "User:bob", listener, "RULE:nobody/x/")


def test_a_certificate_that_no_rule_is_about_is_not_let_in(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    listener, alice = trusting(files, "Alice")

    async def scenario(rig: Rig) -> None:
        with pytest.raises((OSError, EOFError)):
            await seen(rig, alice)
        await rig.counted("closed_unauthenticated", 1)
        await rig.counted("connections_open", 0)

    with caplog.at_level(logging.WARNING):
        judged(scenario, "User:alice", listener, "RULE:nobody/x/")
    assert "no rule of ssl.principal.mapping.rules is about 'CN=Alice," in caplog.text


def test_while_rights_are_not_known_nobody_is_refused_but_hung_up_on() -> None:
    by = AclAuthorizer({"User:alice"}, allow_without_acls=True)
    listener = plain(sasl=Sasl(("PLAIN",), USERS, nobody))

    async def run() -> None:
        async with running(listeners=[listener], authorizer=by) as rig:
            for user, password in USERS.items():
                asking = seen(rig, Connector(ours=Credentials("PLAIN", user, password)))
                if user == "alice":
                    assert await asking == 0
                else:
                    with pytest.raises((OSError, EOFError)):
                        await asking
            await rig.counted("closed_not_ready", 1)
            by.take(AclTable())
            assert await seen(rig, Connector(ours=Credentials("PLAIN", "bob", "build"))) == 0

    asyncio.run(run())


def test_without_a_name_it_is_the_same() -> None:
    async def run() -> None:
        by = AclAuthorizer((), allow_without_acls=True)
        async with running(listeners=[plain()], authorizer=by) as rig:
            with pytest.raises((OSError, EOFError)):
                await seen(rig, Connector())
            await rig.counted("closed_not_ready", 1)

    asyncio.run(run())
