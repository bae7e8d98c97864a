"""Who says who it is, and is who it says, is let in: the gateway's listeners with SASL."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from scramp import ScramMechanism

from streaming.gateway import login
from streaming.gateway.server import Listener
from streaming.security.connector import Connector
from streaming.security.ourselves import Credentials
from streaming.security.sasl_client import NotAuthenticated
from streaming.security.sasl_server import Sasl
from streaming.security.scram import (
    ScramCredential,
)
from streaming.security.tls import client_context, server_context
from streaming.settings_loader import load_settings
from streaming.wire.apis import APIS, ApiKey
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.wire.exchange import CLIENT_ID
from streaming.wire.frames import frame
from streaming.wire.requests import Request, decode_request, encode_request
from streaming.wire.responses import decode_response, encode_response
from tests.fixtures.certificates import Authority
from tests.unit.gateway.support import Client, Rig, with_gateway
from tests.unit.security.support import ask_metadata, credential, metadata

NAMED = "NAMED"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USERS = {"alice": "wonder", "o,k=l": "ünïcode"}
HANDSHAKE = {"mechanism": "PLAIN"}
TOKEN = {"auth_bytes": b"\0alice\0wonder"}
VERSIONS = {"client_software_name": "test", "client_software_version": "1"}


@dataclass
class Known:
    """Credentials of all users for SCRAM."""

    asked: list[tuple[str, str]] = field(default_factory=list)

    async def find(self, mechanism: str, user: str) -> ScramCredential | None:
        self.asked.append((mechanism, user))
        await asyncio.sleep(0)
        return credential(mechanism, USERS[user]) if user in USERS else None


def logged_in(
    scenario: Callable[[Rig], Awaitable[None]], mechanisms: tuple[str, ...] = MECHANISMS
) -> None:
    """Run a scenario against a gateway with a listener with SASL."""
    sasl = Sasl(mechanisms, USERS, Known().find)
    with_gateway(scenario, listeners=[Listener(NAMED, "127.0.0.1", 0, sasl=sasl)])


def end_of(rig: Rig) -> Endpoint:
    (end,) = rig.gateway.endpoints()
    return end


async def asked(ours: Credentials, end: Endpoint) -> int:
    """Return who is the controller."""
    return int((await metadata(Connector(ours=ours), end))["controller_id"])


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_knows_its_password_is_answered(mechanism: str, user: str) -> None:
    async def scenario(rig: Rig) -> None:
        assert end_of(rig).security_protocol is SecurityProtocol.SASL_PLAINTEXT
        assert await asked(Credentials(mechanism, user, USERS[user]), end_of(rig)) == 1000
        assert rig.gateway.counters["closed_unauthenticated"] == 0

    logged_in(scenario)


@pytest.mark.parametrize(
    ("ours", "reason"),
    [
        (Credentials("PLAIN", "alice", "wrong"), "user 'alice' has no such password"),
        (Credentials("PLAIN", "alice", ""), "user 'alice' has no such password"),
        (Credentials("PLAIN", "bob", "wonder"), "user 'bob' has no such password"),
        (Credentials("PLAIN", "bob", ""), "user 'bob' has no such password"),
        (Credentials("SCRAM-SHA-256", "alice", "wrong"), "user 'alice': The client keys don't"),
        (Credentials("SCRAM-SHA-512", "bob", "wonder"), "user 'bob' has no credential for SCRAM"),
    ],
)
def test_who_does_not_is_refused_without_a_reason_and_told_of(
    ours: Credentials, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: Rig) -> None:
        with pytest.raises(NotAuthenticated) as caught:
            await asked(ours, end_of(rig))
        said = str(caught.value)
        assert said.startswith(f"refused with {ours.mechanism} as user {ours.user!r}: Authentic")
        assert said.endswith(f"invalid credentials with {ours.mechanism}")
        await rig.counted("closed_unauthenticated", 1)
        await rig.counted("connections_open", 0)

    logged_in(scenario)
    (line,) = (one.message for one in caplog.records if one.levelno == logging.WARNING)
    assert f"on NAMED: not authenticated by {ours.mechanism}: {reason}" in line


def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are() -> None:
    async def scenario(rig: Rig) -> None:
        with pytest.raises(NotAuthenticated, match="the broker takes SCRAM-SHA-256, SCRAM-SHA-512"):
            await asked(Credentials("PLAIN", "alice", "wonder"), end_of(rig))
        await rig.counted("closed_unauthenticated", 1)

    logged_in(scenario, MECHANISMS[1:])


def test_nothing_is_answered_before_but_versions() -> None:
    async def scenario(rig: Rig) -> None:
        client = await rig.client(NAMED)
        served = await client.ask(ApiKey.API_VERSIONS, 3, VERSIONS)
        keys = {one["api_key"] for one in served["api_keys"]}
        assert {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.METADATA} <= keys
        for count, api in enumerate((ApiKey.METADATA, ApiKey.SASL_AUTHENTICATE), 1):
            stranger = await rig.client(NAMED)
            stranger.write(api, 1, {"topics": None} if api is ApiKey.METADATA else TOKEN)
            await stranger.wait_closed()
            await rig.counted("closed_unauthenticated", count)
        await client.ask(ApiKey.SASL_HANDSHAKE, 1, HANDSHAKE)
        client.write(ApiKey.METADATA, 1, {"topics": None})  # tokens have to come now
        await client.wait_closed()
        await rig.counted("closed_unauthenticated", 3)

    logged_in(scenario)


def test_requests_sent_with_the_login_are_answered_behind_it() -> None:
    async def scenario(rig: Rig) -> None:
        client = await rig.client(NAMED)
        client.write(ApiKey.SASL_HANDSHAKE, 1, HANDSHAKE)
        client.write(ApiKey.SASL_AUTHENTICATE, 2, TOKEN)
        asked_last = client.write(ApiKey.METADATA, 12, {"topics": None})
        for api, version in ((ApiKey.SASL_HANDSHAKE, 1), (ApiKey.SASL_AUTHENTICATE, 2)):
            answer = decode_response(api, version, await client.read_frame())[1]
            assert answer["error_code"] == 0
        id_, answer = decode_response(ApiKey.METADATA, 12, await client.read_frame())
        assert (id_, answer["controller_id"]) == (asked_last, 1000)

    logged_in(scenario)


def test_old_clients_send_tokens_that_are_no_requests() -> None:
    async def scenario(rig: Rig) -> None:
        client = await rig.client(NAMED)
        answer = await client.ask(ApiKey.SASL_HANDSHAKE, 0, HANDSHAKE)
        assert answer == {"error_code": 0, "mechanisms": list(MECHANISMS)}
        client.writer.write(frame(TOKEN["auth_bytes"]))
        assert await client.read_frame() == b""
        answer = await client.ask(ApiKey.METADATA, 12, {"topics": None})
        assert answer["controller_id"] == 1000
        refused = await rig.client(NAMED)
        await refused.ask(ApiKey.SASL_HANDSHAKE, 0, HANDSHAKE)
        refused.writer.write(frame(b"\0alice\0guess"))
        await refused.wait_closed()

    logged_in(scenario)


def test_a_name_is_said_once() -> None:
    async def scenario(rig: Rig) -> None:
        client = await rig.client(NAMED)
        await client.ask(ApiKey.SASL_HANDSHAKE, 1, HANDSHAKE)
        assert (await client.ask(ApiKey.SASL_AUTHENTICATE, 2, TOKEN))["error_code"] == 0
        for api, body in ((ApiKey.SASL_HANDSHAKE, HANDSHAKE), (ApiKey.SASL_AUTHENTICATE, TOKEN)):
            assert (await client.ask(api, 1, body))["error_code"] == 34  # ILLEGAL_SASL_STATE
        assert (await client.ask(ApiKey.METADATA, 12, {"topics": None}))["controller_id"] == 1000

    logged_in(scenario)


def test_a_stranger_cannot_have_us_keep_much() -> None:
    async def scenario(rig: Rig) -> None:
        stranger = await rig.client(NAMED)
        stranger.writer.write((600 * 1024).to_bytes(4, "big") + b"\0")
        await stranger.wait_closed()
        await rig.counted("closed_too_large", 1)
        known = await Connector(ours=Credentials("PLAIN", "alice", "wonder")).open(end_of(rig))
        names = {"topics": [{"name": f"{number:01000}"} for number in range(700)]}
        async with asyncio.timeout(20):
            request = encode_request(ApiKey.METADATA, 9, 0, CLIENT_ID, names)
            assert len(request) > 600 * 1024
            answer = decode_response(ApiKey.METADATA, 9, await known.ask(request))[1]
        assert len(answer["topics"]) == 700
        known.abort()

    logged_in(scenario)


@pytest.mark.parametrize(
    "token", [b"", b"\0\0\0", b"alice\0wonder", b"bob\0alice\0wonder", b"\xff"]
)
def test_tokens_that_are_none_are_refused(token: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "_FAILURE_DELAY_S", 0.0)

    async def refused(client: Client, mechanism: str) -> None:
        await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": mechanism})
        answer = await client.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": token})
        assert answer["error_code"] == 58  # SASL_AUTHENTICATION_FAILED
        await client.wait_closed()

    async def scenario(rig: Rig) -> None:
        for mechanism in MECHANISMS:
            await refused(await rig.client(NAMED), mechanism)
        await rig.counted("closed_unauthenticated", len(MECHANISMS))

    logged_in(scenario)


def test_a_token_for_delegation_is_a_user_there_is_not() -> None:
    async def scenario(rig: Rig) -> None:
        client = await rig.client(NAMED)
        await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "SCRAM-SHA-256"})
        first = {"auth_bytes": b"n,,n=token-id,r=abc,tokenauth=true"}
        assert (await client.ask(ApiKey.SASL_AUTHENTICATE, 2, first))["error_code"] == 58

    logged_in(scenario)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_that_is_not_ours_is_understood(mechanism: str) -> None:
    def controller(port: int) -> int:
        admin = KafkaAdminClient(
            bootstrap_servers=f"127.0.0.1:{port}",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="alice",
            sasl_plain_password="wonder",
        )
        try:
            return int(admin.describe_cluster()["controller_id"])
        finally:
            admin.close()

    async def scenario(rig: Rig) -> None:
        assert await asyncio.to_thread(controller, end_of(rig).port) == 1000

    logged_in(scenario)


def test_in_tls_a_name_is_enough(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    given = load_settings(
        overrides=[
            f"ssl.keystore.location={authority.keystore('node')}",
            f"ssl.truststore.location={authority.trusted}",
        ],
        environment={},
    )
    tls = server_context(given, sasl=True)
    sasl = Sasl(MECHANISMS, USERS, Known().find)
    without_certificate = client_context(given)
    assert without_certificate is not None

    async def scenario(rig: Rig) -> None:
        (end,) = rig.gateway.endpoints()
        assert end.security_protocol is SecurityProtocol.SASL_SSL
        alice = Credentials("SCRAM-SHA-512", "alice", "wonder")
        connection = await Connector(without_certificate, alice).open(end)
        assert (await ask_metadata(connection))["controller_id"] == 1000
        connection.abort()
        with pytest.raises(NotAuthenticated):
            await Connector(without_certificate, replace(alice, password="no")).open(end)
        await rig.counted("closed_unauthenticated", 1)
        for connector in (Connector(without_certificate), Connector(ours=alice)):
            with pytest.raises(ConnectionError, match="does not speak SASL_SSL"):
                await connector.open(end)

    with_gateway(scenario, listeners=[Listener(NAMED, "127.0.0.1", 0, tls=tls, sasl=sasl)])


def test_a_broker_that_is_not_who_we_think_learns_no_password() -> None:
    """Who only pretends to know us cannot say what SCRAM's server has to say at the end."""

    async def pretend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mechanism = ScramMechanism("SCRAM-SHA-256")
        server = mechanism.make_server(lambda _: mechanism.make_auth_info("guess"))
        client = Client(reader, writer)

        async def heard() -> Request:
            return decode_request(await client.read_frame(), APIS)

        def say(request: Request, version: int, **body: object) -> None:
            key, id_ = request.header.api_key, request.header.correlation_id
            writer.write(frame(encode_response(key, version, id_, {"error_code": 0, **body})))

        say(await heard(), 1, mechanisms=[])
        request = await heard()
        server.set_client_first(request.body["auth_bytes"].decode())
        more = {"error_message": None, "session_lifetime_ms": 0}
        say(request, 2, auth_bytes=server.get_server_first().encode(), **more)
        say(await heard(), 2, auth_bytes=f"v={'A' * 43}=".encode(), **more)
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(pretend, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        end = Endpoint(
            listener=NAMED,
            host="127.0.0.1",
            port=port,
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
        )
        ours = Credentials("SCRAM-SHA-256", "alice", "wonder")
        async with asyncio.timeout(20):
            with pytest.raises(NotAuthenticated, match="the broker and user 'alice' do not agree"):
                await Connector(ours=ours).open(end)
        server.close()

    asyncio.run(scenario())


def test_a_connection_is_given_up_before_the_broker_drops_it() -> None:
    async def scenario(rig: Rig) -> None:
        connection = await Connector(ours=Credentials("PLAIN", "alice", "wonder")).open(end_of(rig))
        assert connection.usable
        connection.end_after(3600.0)
        assert connection.usable
        connection.end_after(0.0)
        assert not connection.usable
        connection.abort()

    logged_in(scenario)


@pytest.mark.parametrize("ours", [("", "wonder"), ("alice", "w\tnder"), ("alice", "\U0001f600")])
def test_a_name_that_cannot_be_said_is_a_failure_like_others(ours: tuple[str, str]) -> None:
    async def scenario(rig: Rig) -> None:
        with pytest.raises(NotAuthenticated, match="do not agree"):
            await asked(Credentials("SCRAM-SHA-256", *ours), end_of(rig))

    logged_in(scenario)


def test_what_a_stranger_calls_itself_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(rig: Rig) -> None:
        long = {"auth_bytes": b"\0" + b"\xff" * 400_000 + b"\0x"}
        client = await rig.client(NAMED)
        await client.ask(ApiKey.SASL_HANDSHAKE, 1, HANDSHAKE)
        assert (await client.ask(ApiKey.SASL_AUTHENTICATE, 2, long))["error_code"] == 58
        other = await rig.client(NAMED)
        await other.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "\x01" * 30_000})
        await rig.counted("closed_unauthenticated", 2)

    logged_in(scenario)
    assert max(len(one.getMessage()) for one in caplog.records) < 2_000
