"""Something of everything that a KRaft quorum takes over of ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from kafka import KafkaAdminClient

from streaming.embedded.broker import KafkaBroker
from streaming.security.delegation_tokens import DelegationToken
from streaming.security.scram import credential_of_password, credential_text
from streaming.wire.apis import ApiKey
from streaming.zk.client import ZkSession
from streaming.zk.znodes import config_bytes, entity_config_path
from streaming.zk.znodes.delegation_tokens import token_bytes, token_path
from tests.fixtures.gateway_client import ask_once
from tests.fixtures.znodes import put_znode

ASK_MS = 60_000
OF_THE_QUORUM = {
    "delegation.token.secret.key": "key",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "broker.session.timeout.ms": "60000",  # leaders of a broker that is slow stay
}
CREDENTIAL = credential_text(credential_of_password("SCRAM-SHA-256", b"s" * 32, b"salt", 4096))
TOKEN = DelegationToken("token", "User:alice", "User:bob", ("User:c", "User:a"), 1, 2**41, 2**42)
ENTRIES = [
    {"principal": "User:bob", "permissionType": kind, "operation": "Read", "host": "*"}
    for kind in ("Allow", "Deny")
]
BEFORE = {
    entity_config_path("users", "alice"): config_bytes(
        {"SCRAM-SHA-256": CREDENTIAL, "producer_byte_rate": "1000"}
    ),
    entity_config_path("users", "<default>"): config_bytes({"request_percentage": "12.5"}),
    entity_config_path("users", "a%40b/clients/<default>"): config_bytes(
        {"consumer_byte_rate": "7"}
    ),
    entity_config_path("clients", "app"): config_bytes({"controller_mutation_rate": "3.5"}),
    entity_config_path("ips", "10.0.0.1"): config_bytes({"connection_creation_rate": "5"}),
    entity_config_path("brokers", "<default>"): config_bytes({"log.cleaner.threads": "2"}),
    entity_config_path("brokers", "1"): config_bytes({"log.cleaner.threads": "3"}),
    "/kafka-acl/Topic/t": orjson.dumps({"version": 1, "acls": ENTRIES}),
    "/kafka-acl-extended/prefixed/Group/g-": orjson.dumps({"version": 1, "acls": ENTRIES[:1]}),
    token_path(TOKEN.token_id): token_bytes(TOKEN),
}
"""What is in ZooKeeper beside topics before the migration."""
SECRET, PASSWORD = "password.encoder.secret", "listener.name.internal.ssl.key.password"
BROKER = 4
"""What configurations of brokers are called (ConfigResource.Type)."""
IN_KRAFT_MODE = {
    "process.roles": "broker",
    "node.id": "1",
    "zookeeper.connect": "",
    "zookeeper.metadata.migration.enable": "false",
    "authorizer.class.name": OF_THE_QUORUM["authorizer.class.name"],
}


@contextmanager
def asking(broker: KafkaBroker) -> Iterator[Any]:
    """An admin client at a broker."""
    admin: Any = KafkaAdminClient(
        bootstrap_servers=broker.bootstrap_server, request_timeout_ms=ASK_MS
    )
    try:
        yield admin
    finally:
        admin.close()


def fill(session: ZkSession, broker: KafkaBroker) -> None:
    """Have something of everything that is migrated."""
    for path, data in BEFORE.items():
        put_znode(session, path, data)
    with asking(broker) as admin:
        new = {"num_partitions": 3, "configs": {"retention.ms": "86400000"}}
        admin.create_topics({"t": new, "gone": new}, timeout_ms=ASK_MS)


def set_password(broker: KafkaBroker, word: str) -> None:
    """Set a password in a broker's configuration, which it encrypts; it needs a secret."""
    changed = {"name": PASSWORD, "config_operation": 0, "value": word}
    resource = {"resource_type": BROKER, "resource_name": str(broker.broker_id)}
    body = {"resources": [{**resource, "configs": [changed]}]}
    answer = ask_once(broker.client_port, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body)
    assert answer["responses"][0]["error_code"] == 0, answer
