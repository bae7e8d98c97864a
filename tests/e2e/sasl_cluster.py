"""Three real brokers whose own listener, in TLS, asks who connects, and this node beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType

from streaming.embedded.zookeeper import EmbeddedZooKeeper
from tests.e2e.real_cluster import Kind, RealCluster, running
from tests.e2e.securing import OFFSETS, SECURED, pem
from tests.fixtures.certificates import Authority


def sasl_cluster(
    folder: Path,
    authority: Authority,
    jaas: Path,
    shared: Mapping[str, str],
    *,
    of_brokers: Mapping[str, str] = MappingProxyType({}),
    of_ours: Mapping[str, object] = MappingProxyType({}),
    java: Sequence[str] = (),
    jars: Path | None = None,
    zookeeper: EmbeddedZooKeeper | None = None,
) -> AbstractContextManager[RealCluster]:
    """Return a cluster, not started yet, in which this node coordinates groups.

    jaas: names and proofs of brokers and this node; shared, of_brokers, of_ours: settings; java:
    what brokers' JVMs are told besides; jars: other ones for brokers than those of their version;
    zookeeper: another than a plain one.
    """
    config = {
        "listener.security.protocol.map": f"CLIENT:PLAINTEXT,{SECURED}:SASL_SSL",
        **OFFSETS,
        **shared,
        **of_brokers,
    }
    options = [f"-Djava.security.auth.login.config={jaas}", *java]
    kinds = {
        id_: Kind(config=config | pem(authority, f"broker-{id_}"), jvm_options=options, jars=jars)
        for id_ in (1, 2, 3)
    }
    settings = {
        **shared,
        "gateway.listeners": "",  # those of the brokers, as they have them
        "ssl.keystore.location": authority.keystore("helmstream"),
        "ssl.truststore.location": authority.trusted,
        "java.security.auth.login.config": jaas,
        "groups.takeover.enable": "true",
        "group.initial.rebalance.delay.ms": "0",
        **of_ours,
    }
    given = [f"{key}={value}" for key, value in settings.items()]
    return running(folder, kinds, given, spark=False, zookeeper=zookeeper)
