"""Three real brokers that want names and passwords, in TLS, and a ZooKeeper that does too."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from scramp import ScramMechanism

from streaming.front.user_configs import ZkUserConfigs
from streaming.security.scram import ScramCredential, credential_text
from streaming.settings_loader import load_settings
from tests.e2e.real_cluster import RealCluster
from tests.e2e.sasl_cluster import sasl_cluster
from tests.e2e.shared import Shared
from tests.fixtures.certificates import Authority
from tests.fixtures.jaas import jaas_file, login
from tests.fixtures.secured_zookeeper import zookeeper_with_passwords

SCRAM = "SCRAM-SHA-512"
CLUSTER = "cluster"
HUSH = "hush"
ALICE = "alice"
WONDER = "wonder"
_MODULE = "org.apache.kafka.common.security.{}.{}LoginModule"


@dataclass(frozen=True)
class Named:
    """A cluster, and who signs in it."""

    cluster: RealCluster
    authority: Authority

    def python(
        self, mechanism: str = "PLAIN", password: str = WONDER, user: str = ALICE
    ) -> dict[str, Any]:
        """How somebody connects with kafka-python."""
        return {
            "security_protocol": "SASL_SSL",
            "ssl_context": ssl.create_default_context(cafile=str(self.authority.trusted)),
            "sasl_mechanism": mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": password,
        }

    def librdkafka(self, user: str, password: str) -> dict[str, Any]:
        """How somebody connects with librdkafka, by SCRAM."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority.trusted),
            "sasl.mechanism": SCRAM,
            "sasl.username": user,
            "sasl.password": password,
        }

    def java(self, user: str = ALICE, password: str = WONDER) -> dict[str, str]:
        """How somebody connects with a client of Java's, by SCRAM."""
        module = _MODULE.format("scram", "Scram")
        return {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.trusted),
            "sasl.mechanism": SCRAM,
            "sasl.jaas.config": f'{module} required username="{user}" password="{password}";',
        }


def named_cluster(
    folder: Path,
    authority: Authority,
    users: Mapping[str, str] = MappingProxyType({ALICE: WONDER}),
    shared: Mapping[str, str] = MappingProxyType({}),
    *,
    of_brokers: Mapping[str, str] = MappingProxyType({}),
    jars: Path | None = None,
) -> AbstractContextManager[RealCluster]:
    """Three brokers and this node, to which names and passwords of SCRAM and PLAIN are known.

    users: passwords of who else may log in; shared: further settings of brokers and of this node;
    of_brokers: of brokers alone; jars: other ones for them than those of their version.
    """
    zookeeper = zookeeper_with_passwords(folder / "zookeeper", kafka="zk-hush")
    connect = zookeeper.start()
    ours = login(CLUSTER, HUSH)
    jaas = jaas_file(
        folder / "brokers.jaas",
        {
            "KafkaServer": {
                "ScramLoginModule": ours,
                "PlainLoginModule": login(CLUSTER, HUSH, **users),
            },
            "Client": {"DigestLoginModule": login("kafka", "zk-hush")},
        },
    )
    for user, password in {CLUSTER: HUSH, **users}.items():
        _be_known(connect, jaas, user, password)
    sasl = {
        "zookeeper.connect": connect,
        "zookeeper.set.acl": "true",
        "sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
        "sasl.mechanism.inter.broker.protocol": SCRAM,
        **shared,
    }
    return sasl_cluster(
        folder, authority, jaas, sasl, of_brokers=of_brokers, jars=jars, zookeeper=zookeeper
    )


@contextmanager
def shared_named(
    folders: pytest.TempPathFactory, users: Mapping[str, str], shared: Mapping[str, str]
) -> Iterator[Shared[Named]]:
    """Such a cluster for the tests of a module; users, shared: as `named_cluster`."""
    authority = Authority(folders.mktemp("authority"))

    @contextmanager
    def named() -> Iterator[Named]:
        with named_cluster(folders.mktemp("named"), authority, users, shared) as cluster:
            yield Named(cluster, authority)

    with Shared(named) as clusters:
        yield clusters


def _be_known(connect: str, jaas: Path, user: str, password: str) -> None:
    """Give a user its first password, as brokers know each other by theirs."""
    credential = ScramCredential(*ScramMechanism(SCRAM).make_auth_info(password))
    given = [
        f"zookeeper.connect={connect}",
        "zookeeper.set.acl=true",
        f"java.security.auth.login.config={jaas}",
    ]
    users = ZkUserConfigs(load_settings(overrides=given, environment={}))
    assert asyncio.run(users.alter(user, {SCRAM: credential_text(credential)}))
