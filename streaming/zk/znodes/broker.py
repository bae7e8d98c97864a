"""Broker registrations (/brokers/ids/N), versions 1 to 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from state.json_values import int32, optional_text, text
from streaming.server_address import host_and_port
from streaming.wire.endpoints import Endpoint, SecurityProtocol

_PORT_MAX = 65_535


@dataclass(frozen=True, slots=True)
class BrokerZNode:
    """What a broker says about itself; features are {name: {min_version, max_version}}."""

    endpoints: Sequence[Endpoint]
    rack: str | None = None
    features: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    version: int = 5
    jmx_port: int = -1


def broker_bytes(broker: BrokerZNode, timestamp_ms: int) -> bytes:
    """Write a registration as Kafka does, in its order; host and port are the first PLAINTEXT ones.

    Source: BrokerIdZNode.encode.
    """
    plain = [e for e in broker.endpoints if e.security_protocol is SecurityProtocol.PLAINTEXT]
    znode: dict[str, Any] = {}
    if broker.version >= 5:
        znode["features"] = broker.features
    if broker.version >= 4:
        znode["listener_security_protocol_map"] = {
            e.listener: e.security_protocol.name for e in broker.endpoints
        }
    if broker.version >= 2:
        znode["endpoints"] = [_connection_string(e) for e in broker.endpoints]
    if broker.rack is not None and broker.version >= 3:
        znode["rack"] = broker.rack
    znode["jmx_port"] = broker.jmx_port
    znode["port"] = plain[0].port if plain else -1
    znode["host"] = plain[0].host if plain else None
    znode["version"] = broker.version
    znode["timestamp"] = str(timestamp_ms)
    return orjson.dumps(znode)


def parse_broker(data: bytes) -> BrokerZNode:
    """Read a registration of any version; raises ValueError naming what is wrong.

    Version 1 has one PLAINTEXT endpoint; without a protocol map (versions 2, 3) a listener's name
    is its protocol. Source: BrokerIdZNode.decode.
    """
    try:
        znode = orjson.loads(data)
        version = int32(znode["version"])
        if version < 1:
            raise ValueError(f"version {version} is not known")
        if version == 1:
            endpoints = [_plain_endpoint(text(znode["host"]), _port(int32(znode["port"])))]
        else:
            protocols = znode.get("listener_security_protocol_map") or {}
            endpoints = [_endpoint(text(one), protocols) for one in znode["endpoints"]]
        return BrokerZNode(
            endpoints,
            optional_text(znode.get("rack")),
            _features(znode.get("features") or {}),
            version,
            int32(znode.get("jmx_port", -1)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"broken broker registration: {error!r} in {data[:300]!r}") from error


def _plain_endpoint(host: str, port: int) -> Endpoint:
    plain = SecurityProtocol.PLAINTEXT
    return Endpoint(listener=plain.name, host=host, port=port, security_protocol=plain)


def _endpoint(written: str, protocols: Mapping[str, str]) -> Endpoint:
    listener, separator, address = written.partition("://")
    if not separator or ":" not in address:
        raise ValueError(f"endpoint {written!r} is not LISTENER://HOST:PORT")
    host, port = host_and_port(address)
    protocol = protocols.get(listener, listener)
    if protocol not in SecurityProtocol.__members__:
        raise ValueError(f"security protocol {protocol!r} is not one of {[*SecurityProtocol]}")
    return Endpoint(
        listener=listener,
        host=host,
        port=_port(port),
        security_protocol=SecurityProtocol[protocol],
    )


def _port(number: int) -> int:
    if not 0 <= number <= _PORT_MAX:
        raise ValueError(f"port {number} is not between 0 and {_PORT_MAX}")
    return number


def _features(features: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, int]]:
    return {
        name: {level: int32(number) for level, number in levels.items()}
        for name, levels in features.items()
    }


def _connection_string(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"
