"""A gateway with a listener in TLS, the keys and credentials of who connects to it, and what they
ask.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scramp import ScramMechanism

from streaming.gateway.connection import Limits
from streaming.gateway.server import Listener
from streaming.keyfiles.renewed import RenewedContext
from streaming.security.connector import Connector
from streaming.security.scram import ScramCredential
from streaming.security.tls import server_context
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint
from streaming.wire.exchange import CLIENT_ID, Exchange
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from tests.fixtures.certificates import Authority
from tests.unit.gateway.support import Rig, with_gateway

SECURE = "SECURE"
ALL_TOPICS = {"topics": None}


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


async def ask_metadata(connection: Exchange) -> dict[str, Any]:
    """Ask for all topics."""
    request = encode_request(ApiKey.METADATA, 12, 0, CLIENT_ID, ALL_TOPICS)
    async with asyncio.timeout(20):
        return decode_response(ApiKey.METADATA, 12, await connection.ask(request))[1]


async def metadata(connector: Connector, end: Endpoint) -> dict[str, Any]:
    """Connect, ask for all topics, and hang up."""
    connection = await connector.open(end)
    try:
        return await ask_metadata(connection)
    finally:
        connection.abort()


def credential(mechanism: str, password: str) -> ScramCredential:
    """What is known of who has a password."""
    return ScramCredential(*ScramMechanism(mechanism).make_auth_info(password))


def secured(
    scenario: Callable[[Rig], Awaitable[None]],
    given: Settings | RenewedContext | None,
    limits: Limits | None = None,
) -> None:
    """Run a scenario against a gateway with a listener in TLS, as configured or as given."""
    tls = server_context(given) if isinstance(given, Settings) else given
    with_gateway(scenario, limits, [Listener(SECURE, "127.0.0.1", 0, tls=tls)])


def connecting(trusted: Authority, key: Path) -> Connector:
    """Who has this key, and trusts an authority alone."""
    context = ssl.create_default_context(cafile=str(trusted.trusted))
    context.load_cert_chain(key)
    return Connector(RenewedContext(lambda: context))


def showing(key: Path) -> RenewedContext:
    """What TLS is spoken with by a broker that has this key, and lets anybody in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(key)
    return RenewedContext(lambda: context)
