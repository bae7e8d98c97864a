"""A principal builder of the brokers' own: what it is asked, when, and what follows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from streaming.gateway.calls import Answer, BoundListener
from streaming.gateway.introduction import Introduction
from streaming.gateway.server import Listener
from streaming.security.acls import ANY, Acl, AclTable, Client, Operation, Pattern, ResourceType
from streaming.security.authorizer import AclAuthorizer
from streaming.security.connector import Connector
from streaming.security.identity import Identity, Refused, Undecided
from streaming.security.newcomers import Newcomer
from streaming.security.ourselves import Credentials
from streaming.security.sasl_server import Sasl
from streaming.security.tls import client_context, server_context
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import SecurityProtocol
from tests.unit.gateway.support import Rig, running
from tests.unit.security.support import SECURE, Files, ask_metadata, metadata

USERS = {"bob": "build"}
HERE = BoundListener("PLAIN", "127.0.0.1", 9092)


class Builder:
    """Says, on another thread, that all clients have one principal."""

    def __init__(
        self, principal: str = "Group:staff", fails: type[Exception] | None = None
    ) -> None:
        self.principal = principal
        self.fails = fails
        self.asked: list[Newcomer] = []
        self.started = 0

    def start(self) -> None:
        self.started += 1

    async def client(self, newcomer: Newcomer) -> Client:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self._client, newcomer)

    def _client(self, newcomer: Newcomer) -> Client:
        self.asked.append(newcomer)
        if self.fails is not None:
            raise self.fails("nothing is known")
        return newcomer.known_as(self.principal)


async def nobody(_: str, __: str) -> None:
    return None


def built(
    scenario: Callable[[Rig], Awaitable[None]],
    builder: Builder,
    listener: Listener | None = None,
) -> None:
    """Run a scenario where the staff, and nobody else, sees the only topic."""
    authorizer = AclAuthorizer(("Group:root",), allow_without_acls=False)
    mine = [Acl("Group:staff", ANY, Operation.DESCRIBE, True)]
    authorizer.take(AclTable({Pattern(ResourceType.TOPIC, ANY, prefixed=False): mine}))

    async def run() -> None:
        listeners = [listener or Listener("CLIENT", "127.0.0.1", 0)]
        async with running(listeners=listeners, authorizer=authorizer, builder=builder) as rig:
            rig.cluster.create("t", [[1]])
            await scenario(rig)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("principal", "sees"), [("Group:staff", 1), ("User:staff", 0), ("Group:root", 1)]
)
def test_it_is_asked_once_for_each_connection(principal: str, sees: int) -> None:
    builder = Builder(principal)

    async def scenario(rig: Rig) -> None:
        (end,) = rig.gateway.endpoints()
        connection = await Connector().open(end)
        await rig.counted("connections_open", 1)
        assert not builder.asked, "nothing was asked by the client yet"
        for _ in range(3):
            assert len((await ask_metadata(connection))["topics"]) == sees
        connection.abort()
        assert len((await metadata(Connector(), end))["topics"]) == sees

    built(scenario, builder)
    came = Newcomer(host="127.0.0.1", listener="CLIENT", protocol=SecurityProtocol.PLAINTEXT)
    assert builder.asked == [came, came] and builder.started == 1


def test_it_is_told_of_a_certificate(files: Files) -> None:
    given = files.settings()
    context = client_context(given)

    async def scenario(rig: Rig) -> None:
        (end,) = rig.gateway.endpoints()
        await metadata(Connector(context), end)

    builder = Builder()
    built(scenario, builder, Listener(SECURE, "127.0.0.1", 0, tls=server_context(given)))
    (asked,) = builder.asked
    assert asked.protocol is SecurityProtocol.SSL
    assert asked.certificate is not None and b"node" in asked.certificate
    assert asked.known_as("User:a").proven and not asked.known_as("User:ANONYMOUS").proven


def test_it_is_told_of_a_login(files: Files) -> None:
    given = files.settings()
    sasl = Sasl(("PLAIN",), USERS, nobody)
    listener = Listener(SECURE, "127.0.0.1", 0, tls=server_context(given, sasl=True), sasl=sasl)
    bob = Connector(client_context(given), Credentials("PLAIN", "bob", "build"))

    async def scenario(rig: Rig) -> None:
        (end,) = rig.gateway.endpoints()
        assert len((await metadata(bob, end))["topics"]) == 1

    builder = Builder()
    built(scenario, builder, listener)
    (asked,) = builder.asked
    assert asked.protocol is SecurityProtocol.SASL_SSL and asked.certificate is None
    assert (asked.mechanism, asked.identity) == ("PLAIN", Identity("User:bob"))
    assert asked.identity is not None and asked.identity.authorization_id == "bob"
    assert asked.known_as("Group:b").proven


@pytest.mark.parametrize(
    ("fails", "counter"),
    [(Refused, "closed_unauthenticated"), (Undecided, "closed_not_ready")],
)
def test_who_has_no_name_is_hung_up_on(
    fails: type[Exception], counter: str, caplog: pytest.LogCaptureFixture
) -> None:
    builder = Builder(fails=fails)

    async def scenario(rig: Rig) -> None:
        (end,) = rig.gateway.endpoints()
        with pytest.raises((OSError, EOFError)):
            await metadata(Connector(), end)
        await rig.counted(counter, 1)
        await rig.counted("connections_open", 0)
        builder.fails = None
        assert len((await metadata(Connector(), end))["topics"]) == 1

    with caplog.at_level(logging.DEBUG):
        built(scenario, builder)
    assert "nothing is known" in caplog.text


class Behind:
    """Answers each of three APIs in a way of its own."""

    listener = HERE

    def largest_bytes(self, configured_bytes: int) -> int:
        return configured_bytes // 2

    def at_once(self, api_key: int, request_frame: bytes) -> bytes | None:
        return b"at once" if api_key == ApiKey.HEARTBEAT else None

    def try_answer(
        self, api_key: int, request_frame: bytes, client_host: str, answer: Answer
    ) -> bool:
        if api_key == ApiKey.JOIN_GROUP:
            answer(b"to " + client_host.encode())
        return api_key == ApiKey.JOIN_GROUP

    async def answer(self, request_frame: bytes) -> bytes:
        return b"in a task"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (ApiKey.HEARTBEAT, b"at once"),
        (ApiKey.JOIN_GROUP, b"to /1.2.3.4"),
        (ApiKey.METADATA, b"in a task"),
    ],
)
def test_a_first_request_is_answered_as_any_other(key: ApiKey, expected: bytes) -> None:
    request, builder, behind = key.to_bytes(2, "big"), Builder(), Behind()
    came = Newcomer(host="1.2.3.4", listener="CLIENT", protocol=SecurityProtocol.PLAINTEXT)
    introduction = Introduction(behind, lambda: builder.client(came), lambda _: behind)
    answers: list[bytes] = []

    async def ask() -> bytes:
        """Ask as a connection does."""
        found = introduction.at_once(key, request)
        if found is None:
            if introduction.try_answer(key, request, "/1.2.3.4", answers.append):
                return answers.pop()
            found = await introduction.answer(request)
        return found

    assert introduction.listener == HERE and introduction.largest_bytes(10) == 5
    assert [asyncio.run(ask()) for _ in range(2)] == [expected, expected]
    assert len(builder.asked) == 1
