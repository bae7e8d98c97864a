"""`helmstream migration`: everything put together, from connecting to what was found."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from state.protocol_errors import error_text
from streaming.image.brokers import endpoint_on
from streaming.migration.brokers import Configs, broker_findings, real_brokers
from streaming.migration.controllers import (
    controller_findings,
    read_controllers,
    without_what_is_done,
)
from streaming.migration.findings import Finding, Weight
from streaming.migration.metadata import metadata_findings
from streaming.migration.reading import znode_findings
from streaming.preflight import check_zookeeper
from streaming.security.connector import Connector
from streaming.settings import Settings
from streaming.verification.asking import connected
from streaming.verification.cluster import Cluster, read_cluster
from streaming.wire.apis import ApiKey
from streaming.wire.config_resource import ConfigResourceType
from streaming.wire.endpoints import Endpoint
from streaming.wire.errors import WireError
from streaming.zk.opening import reader_of

_AT_ONCE = 8


@dataclass(slots=True)
class Found:
    """What was found, and what could not be looked at; begun: whether the migration has begun."""

    findings: list[Finding] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    begun: bool = False

    def of(self, weight: Weight) -> list[Finding]:
        """Return the findings of one weight."""
        return [one for one in self.findings if one.weight is weight]


def look(settings: Settings, controllers: Sequence[Path] = ()) -> Found:
    """Look at a cluster that is to be migrated to KRaft; changes nothing in it.

    controllers: files of properties of the controllers to which it migrates, if they are known.

    Raises NoZooKeeper, ConfigurationError when a file that the settings name cannot be used, and
    the errors of streaming.zk.errors.
    """
    known = read_controllers(controllers)
    check_zookeeper(settings.zookeeper_connect, settings.zookeeper_connection_timeout_ms)
    connector, found = Connector.of(settings), Found()
    with reader_of(settings) as session:
        cluster = read_cluster(session)
        found.begun = cluster.in_kraft
        found.findings += metadata_findings(cluster)
        found.findings += znode_findings(
            session, found.gaps, begun=cluster.in_kraft, controllers=known
        )
    told = asyncio.run(_ask(cluster, connector, settings, found.gaps))
    found.findings += broker_findings(told)
    found.findings += controller_findings(known, real_brokers(told), settings.zookeeper_connect)
    found.findings = list(without_what_is_done(found.findings, known))
    found.findings.sort(key=lambda one: list(Weight).index(one.weight))
    return found


async def _ask(
    cluster: Cluster, connector: Connector, settings: Settings, gaps: list[str]
) -> Mapping[int, Configs]:
    """Return what each broker says of its configuration; gaps gets those that say nothing."""
    timeout_s, turns = settings.request_timeout_ms / 1000, asyncio.Semaphore(_AT_ONCE)
    told: dict[int, Configs] = {}

    async def ask(id_: int, end: Endpoint | None) -> None:
        if end is None:
            gaps.append(f"broker {id_}: it has no address on inter.broker.listener.name")
            return
        try:
            async with turns:
                told[id_] = await _configs(id_, connector, end, timeout_s)
        except (OSError, WireError) as error:  # TimeoutError is one
            gaps.append(f"broker {id_}: at {end.host}:{end.port}: {str(error) or repr(error)}")

    listener = settings.inter_broker_listener_name
    await asyncio.gather(
        *(ask(id_, endpoint_on(node, listener)) for id_, node in sorted(cluster.brokers.items()))
    )
    return told


async def _configs(id_: int, connector: Connector, end: Endpoint, timeout_s: float) -> Configs:
    """Raises OSError, TimeoutError, WireError."""
    resource = {
        "resource_type": ConfigResourceType.BROKER,
        "resource_name": str(id_),
        "configuration_keys": None,
    }
    body = {
        "resources": [resource],
        "include_synonyms": False,
        "include_documentation": False,
    }
    async with connected(connector, end, timeout_s) as broker:
        (result,) = (await broker.ask(ApiKey.DESCRIBE_CONFIGS, body))["results"]
    if code := result["error_code"]:
        raise OSError(f"it does not tell its configuration: {error_text(code)}")
    return {one["name"]: one["value"] for one in result["configs"]}
