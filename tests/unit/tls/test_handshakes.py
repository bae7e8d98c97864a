"""Who gets through a handshake with us, in both directions: the gateway's server, the connector."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from streaming.gateway.server import Listener
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.tls.connector import Connector
from streaming.tls.contexts import server_context
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.wire.exchange import CLIENT_ID, Exchange
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from tests.fixtures.certificates import Authority
from tests.fixtures.waiting import wait_on_loop
from tests.unit.gateway.support import Client, Rig, with_gateway

SECURE = "SECURE"
ALL_TOPICS = {"topics": None}
REFUSED = (ssl.SSLError, ConnectionError, EOFError)


@dataclass
class Files:
    """Keys of this node and of somebody else, and who trusts whom."""

    folder: Path
    authority: Authority = field(init=False)
    stranger: Authority = field(init=False)

    def __post_init__(self) -> None:
        self.authority = Authority(self.folder / "ours")
        self.stranger = Authority(self.folder / "strange")

    def settings(self, *overrides: str, signed_by: Authority | None = None) -> Settings:
        """A node's settings; all trust our authority alone, whoever signed their key."""
        key, trusted = (signed_by or self.authority).keystore("node"), self.authority.trusted
        given = [f"ssl.keystore.location={key}", f"ssl.truststore.location={trusted}", *overrides]
        return load_settings(overrides=given, environment={})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


def secured(scenario: Callable[[Rig, list[str]], Awaitable[None]], given: Settings) -> None:
    """Run a scenario against a gateway with a listener in TLS; it gets the reasons of handshakes
    that failed.
    """
    failures: list[str] = []
    listener = Listener(SECURE, "127.0.0.1", 0, tls=server_context(given, failures.append))
    with_gateway(lambda rig: scenario(rig, failures), listeners=[listener])


def end_of(rig: Rig) -> Endpoint:
    (end,) = rig.gateway.endpoints()
    assert end.security_protocol is SecurityProtocol.SSL
    return end


async def asked(connector: Connector, end: Endpoint) -> int:
    """Ask for all topics, and return how many partitions the first has."""
    streams = await connector.open(end)
    connection = Exchange(*streams)
    try:
        request = encode_request(ApiKey.METADATA, 12, 0, CLIENT_ID, ALL_TOPICS)
        async with asyncio.timeout(20):
            answer = decode_response(ApiKey.METADATA, 12, await connection.ask(request))[1]
    finally:
        connection.abort()
    return len(answer["topics"][0]["partitions"])


def test_who_shows_a_certificate_is_answered(files: Files) -> None:
    given = files.settings()

    async def scenario(rig: Rig, failures: list[str]) -> None:
        rig.cluster.create("big", [[1, 2, 3]] * 20_000)
        assert await asked(Connector.of(given), end_of(rig)) == 20_000
        assert not failures

    secured(scenario, given)


def test_who_shows_none_or_a_strange_one_is_refused_and_told_of(files: Files) -> None:
    async def scenario(rig: Rig, failures: list[str]) -> None:
        strange = Connector.of(files.settings(signed_by=files.stranger))
        nobody = ssl.create_default_context(cafile=str(files.authority.trusted))
        for count, connector in enumerate((strange, Connector(nobody)), 1):
            with pytest.raises(REFUSED):
                await asked(connector, end_of(rig))
            await wait_on_loop("the reason", lambda count=count: len(failures) == count)
        assert "PEER_DID_NOT_RETURN_A_CERTIFICATE" in failures[1]
        assert rig.gateway.counters["connections_accepted"] == 0

    secured(scenario, files.settings())


@pytest.mark.parametrize("policy", ["none", "requested"])
def test_who_need_not_show_a_certificate_is_answered_without(files: Files, policy: str) -> None:
    async def scenario(rig: Rig, failures: list[str]) -> None:
        rig.cluster.create("one", [[1, 2, 3]])
        nobody = ssl.create_default_context(cafile=str(files.authority.trusted))
        assert await asked(Connector(nobody), end_of(rig)) == 1

    secured(scenario, files.settings(f"ssl.client.auth={policy}"))


def test_a_broker_that_we_do_not_trust_is_not_told_anything(files: Files) -> None:
    async def scenario(rig: Rig, failures: list[str]) -> None:
        with pytest.raises(ssl.SSLCertVerificationError):
            await asked(Connector.of(files.settings()), end_of(rig))
        assert rig.gateway.counters["requests_Metadata"] == 0

    secured(scenario, files.settings("ssl.client.auth=none", signed_by=files.stranger))


@pytest.mark.parametrize(("checked", "through"), [("https", False), ("", True)])
def test_a_certificate_is_for_the_host_unless_that_is_left_open(
    files: Files, checked: str, through: bool
) -> None:
    elsewhere = files.authority.keystore("elsewhere", "broker-1.example")
    server = files.settings(f"ssl.keystore.location={elsewhere}")
    client = files.settings(f"ssl.endpoint.identification.algorithm={checked}")

    async def scenario(rig: Rig, failures: list[str]) -> None:
        rig.cluster.create("one", [[1]])
        if through:
            assert await asked(Connector.of(client), end_of(rig)) == 1
            return
        with pytest.raises(ssl.SSLCertVerificationError, match=r"not valid for .127\.0\.0\.1"):
            await asked(Connector.of(client), end_of(rig))

    secured(scenario, server)


def test_plain_text_where_tls_is_spoken_costs_that_connection_only(files: Files) -> None:
    given = files.settings()

    async def scenario(rig: Rig, failures: list[str]) -> None:
        rig.cluster.create("one", [[1]])
        plain = await rig.client(SECURE)
        plain.write(ApiKey.METADATA, 12, ALL_TOPICS)
        await plain.wait_closed()
        assert len(failures) == 1
        assert await asked(Connector.of(given), end_of(rig)) == 1

    secured(scenario, given)


def test_requests_sent_without_waiting_are_answered_in_their_order(files: Files) -> None:
    given = files.settings("ssl.client.auth=none")

    async def scenario(rig: Rig, failures: list[str]) -> None:
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

    async def scenario(rig: Rig, failures: list[str]) -> None:
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
