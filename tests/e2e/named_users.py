"""Somebody who asks nodes of a cluster where all have names."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from streaming.embedded.ports import LOOPBACK
from streaming.keyfiles.renewed import https_context
from streaming.security.connector import Connector
from streaming.security.ourselves import Credentials
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from tests.e2e.named_cluster import SCRAM, Named
from tests.e2e.securing import SECURED

Request: TypeAlias = tuple[ApiKey, int, dict[str, Any]]


@dataclass(frozen=True)
class User:
    """Somebody who asks at the secured listener, by SCRAM."""

    named: Named
    name: str
    password: str

    def asks(self, port: int, requests: Sequence[Request]) -> list[Any]:
        """What it is answered at a port, without what nodes may word differently."""
        return [alike(one) for one in asyncio.run(self._answers(port, requests))]

    def asks_us(self, requests: Sequence[Request]) -> list[Any]:
        """What it is answered by this node."""
        return self.asks(self.named.cluster.port + 1, requests)

    def asks_broker(self, requests: Sequence[Request], broker: int = 1) -> list[Any]:
        """What it is answered by a broker."""
        return self.asks(self.named.cluster.brokers[broker].internal_port, requests)

    async def _answers(self, port: int, requests: Sequence[Request]) -> list[dict[str, Any]]:
        ours = Credentials(SCRAM, self.name, self.password)
        connector = Connector(https_context("", str(self.named.authority.trusted)), ours)
        end = Endpoint(
            listener=SECURED,
            host=LOOPBACK,
            port=port,
            security_protocol=SecurityProtocol.SASL_SSL,
        )
        async with asyncio.timeout(120):
            connection = await connector.open(end)
            try:
                return [
                    decode_response(key, version, await connection.ask(encoded))[1]
                    for key, version, body in requests
                    for encoded in [encode_request(key, version, 0, "c", body)]
                ]
            finally:
                connection.abort()


def alike(body: Any) -> Any:
    """A body without what nodes may word differently, lists in an order of their own."""
    if isinstance(body, list):
        return sorted((alike(one) for one in body), key=repr)
    if not isinstance(body, dict):
        return body
    worded = {"throttle_time_ms", "error_message"}
    return {name: alike(one) for name, one in body.items() if name not in worded}
