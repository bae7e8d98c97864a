"""Who gets through a handshake with us, in both directions: the gateway's server, the connector."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl

import pytest

from streaming.gateway.connection import Limits
from streaming.gateway.passing.pool import BrokerFailed, BrokerPool, PassingLimits, Target
from streaming.gateway.server import Listener
from streaming.keyfiles.renewed import https_context
from streaming.security.connector import Connector
from streaming.security.tls import server_context
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.wire.exchange import CLIENT_ID
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from tests.unit.gateway.support import Client, Rig, with_gateway
from tests.unit.security.support import (
    ALL_TOPICS,
    SECURE,
    Files,
    connecting,
    metadata,
    secured,
    showing,
)

REFUSED = (ssl.SSLError, ConnectionError, EOFError)


def end_of(rig: Rig) -> Endpoint:
    (end,) = rig.gateway.endpoints()
    assert end.security_protocol is SecurityProtocol.SSL
    return end


async def asked(connector: Connector, end: Endpoint) -> int:
    """Ask for all topics, and return how many partitions the first has."""
    return len((await metadata(connector, end))["topics"][0]["partitions"])


def test_who_shows_a_certificate_is_answered(files: Files) -> None:
    given = files.settings()

    async def scenario(rig: Rig) -> None:
        rig.cluster.create("big", [[1, 2, 3]] * 20_000)
        assert await asked(Connector.of(given), end_of(rig)) == 20_000
        assert rig.gateway.counters["closed_handshake"] == 0

    secured(scenario, given)


def test_who_shows_none_or_a_strange_one_is_refused_and_told_of(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: Rig) -> None:
        strange = Connector.of(files.settings(signed_by=files.stranger))
        nobody = https_context("", str(files.authority.trusted))
        for count, connector in enumerate((strange, Connector(nobody)), 1):
            with pytest.raises(REFUSED):
                await asked(connector, end_of(rig))
            await rig.counted("closed_handshake", count)
        await rig.counted("connections_open", 0)

    with caplog.at_level(logging.INFO):
        secured(scenario, files.settings())
    strange, none = (one.message for one in caplog.records if "no TLS" in one.message)
    assert strange.startswith("no TLS handshake on SECURE with 127.0.0.1:")
    assert "certificate verify failed" in strange
    assert "peer did not return a certificate" in none


@pytest.mark.parametrize("policy", ["none", "requested"])
def test_who_need_not_show_a_certificate_is_answered_without(files: Files, policy: str) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("one", [[1, 2, 3]])
        nobody = https_context("", str(files.authority.trusted))
        assert await asked(Connector(nobody), end_of(rig)) == 1

    secured(scenario, files.settings(f"ssl.client.auth={policy}"))


def test_a_broker_that_we_do_not_trust_is_not_told_anything(files: Files) -> None:
    async def scenario(rig: Rig) -> None:
        with pytest.raises(ssl.SSLCertVerificationError):
            await asked(Connector.of(files.settings()), end_of(rig))
        assert rig.gateway.counters["requests_Metadata"] == 0

    secured(scenario, showing(files.stranger.keystore("node")))


@pytest.mark.parametrize(("checked", "through"), [("https", False), ("", True)])
def test_a_certificate_is_for_the_host_unless_that_is_left_open(
    files: Files, checked: str, through: bool
) -> None:
    elsewhere = files.authority.keystore("elsewhere", "broker-1.example")
    client = files.settings(f"ssl.endpoint.identification.algorithm={checked}")

    async def scenario(rig: Rig) -> None:
        rig.cluster.create("one", [[1]])
        if through:
            assert await asked(Connector.of(client), end_of(rig)) == 1
            return
        with pytest.raises(ssl.SSLCertVerificationError, match=r"not valid for .127\.0\.0\.1"):
            await asked(Connector.of(client), end_of(rig))

    secured(scenario, showing(elsewhere))


def test_plain_text_where_tls_is_spoken_costs_that_connection_only(files: Files) -> None:
    given = files.settings()

    async def scenario(rig: Rig) -> None:
        rig.cluster.create("one", [[1]])
        plain = await rig.client(SECURE)
        plain.write(ApiKey.METADATA, 12, ALL_TOPICS)
        await plain.wait_closed()
        await rig.counted("closed_handshake", 1)
        assert await asked(Connector.of(given), end_of(rig)) == 1

    secured(scenario, given)


def test_requests_sent_without_waiting_are_answered_in_their_order(files: Files) -> None:
    given = files.settings("ssl.client.auth=none")

    async def scenario(rig: Rig) -> None:
        rig.cluster.create("wide", [[1, 2, 3]] * 3_000)  # answers larger than what is buffered
        context = ssl.create_default_context(cafile=str(files.authority.trusted))
        client = await rig.client(SECURE, ssl=context)
        sent = [client.write(ApiKey.METADATA, 1, ALL_TOPICS) for _ in range(30)]
        got = [decode_response(3, 1, await client.read_frame())[0] for _ in sent]
        assert got == sent

    secured(scenario, given)


def test_who_hangs_up_leaves_no_word_in_the_log(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    given = files.settings("ssl.client.auth=none")

    async def scenario(rig: Rig) -> None:
        context = ssl.create_default_context(cafile=str(files.authority.trusted))
        for abruptly in (True, False):
            client: Client = await rig.client(SECURE, ssl=context)
            await client.ask(ApiKey.METADATA, 1, ALL_TOPICS)
            if abruptly:
                await client.close()
            else:
                client.writer.close()
            await rig.counted("connections_open", 0)

    with caplog.at_level(logging.INFO):
        secured(scenario, given)
    assert [one.message for one in caplog.records] == []


def test_a_protocol_without_a_key_is_not_spoken() -> None:
    secure = Endpoint(
        listener=SECURE, host="127.0.0.1", port=1, security_protocol=SecurityProtocol.SSL
    )
    connector = Connector()
    assert not connector.speaks(secure)
    with pytest.raises(ConnectionError, match="does not speak SSL"):
        asyncio.run(connector.open(secure))


def test_who_does_not_read_is_dropped(files: Files) -> None:
    given = files.settings("ssl.client.auth=none")

    async def scenario(rig: Rig) -> None:
        for number in range(4):
            rig.cluster.create(f"wide-{number}", [[1, 2, 3]] * 60_000)
        context = ssl.create_default_context(cafile=str(files.authority.trusted))
        client = await rig.client(SECURE, ssl=context, limit=1)
        client.write(ApiKey.METADATA, 12, ALL_TOPICS)
        await rig.counted("closed_slow", 1)

    secured(scenario, given, Limits(write_timeout_ms=300))


def test_a_certificate_that_cannot_be_read_takes_no_place_for_good(files: Files) -> None:
    odd = connecting(files.authority, files.authority.unreadable_keystore())

    async def scenario(rig: Rig) -> None:
        for count in (1, 2, 3):
            with pytest.raises(REFUSED):
                await asked(odd, end_of(rig))
            await rig.counted("closed_handshake", count)
        await rig.counted("connections_open", 0)

    secured(scenario, files.settings(), Limits(max_connections=2))


def test_a_broker_whose_certificate_cannot_be_read_is_passed_over(files: Files) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.authority.unreadable_keystore())
    any_host = files.settings("ssl.endpoint.identification.algorithm=")

    async def scenario() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=context)
        end = Endpoint(
            listener=SECURE,
            host="127.0.0.1",
            port=server.sockets[0].getsockname()[1],
            security_protocol=SecurityProtocol.SSL,
        )
        pool = BrokerPool(Target(1, 1, end), PassingLimits(), Connector.of(any_host))
        with pytest.raises(BrokerFailed) as caught:
            await pool.exchange(encode_request(ApiKey.METADATA, 12, 0, CLIENT_ID, ALL_TOPICS))
        assert not caught.value.asked
        server.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("in_tls", [False, True])
def test_who_comes_while_the_gateway_stops_is_not_let_in(
    files: Files, in_tls: bool, turns: int
) -> None:
    async def scenario(rig: Rig) -> None:
        loop = asyncio.get_running_loop()
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", rig.port(SECURE)))
            for _ in range(turns):
                await asyncio.sleep(0)
            await rig.gateway.stop()
            await asyncio.sleep(0.05)
            assert rig.gateway.counters["connections_open"] == 0

    tls = server_context(files.settings()) if in_tls else None
    with_gateway(scenario, listeners=[Listener(SECURE, "127.0.0.1", 0, tls=tls)])


def test_a_connection_has_its_place_before_its_handshake(files: Files) -> None:
    given = files.settings("ssl.client.auth=none")

    async def scenario(rig: Rig) -> None:
        silent = [await rig.client(SECURE) for _ in range(2)]
        await rig.counted("connections_open", 2)
        refused = await rig.client(SECURE)
        await refused.wait_closed()
        assert rig.gateway.counters["connections_refused"] == 1
        for one in silent:
            await one.close()
        await rig.counted("closed_handshake", 2)
        await rig.counted("connections_open", 0)
        rig.cluster.create("one", [[1]])
        assert await asked(Connector.of(given), end_of(rig)) == 1
        await rig.client(SECURE)  # is ended with the gateway
        await rig.counted("connections_open", 1)

    secured(scenario, given, Limits(max_connections=2))


def test_a_broker_that_refuses_our_certificate_is_passed_over(files: Files) -> None:
    """It says so after the handshake, as far as TLS 1.3 is concerned."""
    strange = Connector.of(files.settings(signed_by=files.stranger))

    async def scenario(rig: Rig) -> None:
        pool = BrokerPool(Target(1, 1, end_of(rig)), PassingLimits(), strange)
        with pytest.raises(BrokerFailed) as caught:
            await pool.exchange(encode_request(ApiKey.METADATA, 12, 0, CLIENT_ID, ALL_TOPICS))
        assert not caught.value.asked

    secured(scenario, files.settings())
