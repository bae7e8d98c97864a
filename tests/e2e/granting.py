"""Rights that users are given, and what they hear of a broker and of the gateway then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from streaming.gateway.rights.rules import FREE
from streaming.wire.apis import APIS, ApiKey
from tests.e2e.named_cluster import CLUSTER, HUSH, Named
from tests.e2e.named_users import Request, User
from tests.e2e.securing import coordinated_here, create, gateway
from tests.e2e.waiting import wait_for
from tests.fixtures.kafka_tools import NEW, KafkaTools
from tests.unit.gateway.bodies import BODIES

BOB, BUILD = "bob", "build"
EVE, TEMPT = "eve", "tempt"
"""Who is given no right by any test."""
SUPER_USERS = f"User:{CLUSTER};User:ANONYMOUS"
"""On the plain listener the tests look after brokers."""
CONTROLLERS = {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
}
"""Of which a broker that is not the controller says so before it looks at rights."""
ONE_ERROR = {ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS}
"""Which Kafka refuses once more for each part."""
_RESOURCES = [
    {"resource_type": kind, "resource_name": name, "configs": []}
    for kind, name in ((2, "t"), (4, "1"))
]
OF_CONFIGS = {
    key: {"resources": _RESOURCES}
    for key in (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
}
"""A broker says first that it is not another one."""


class Grant:
    """Gives and takes rights with Kafka's own tool, at the gateway.

    kind: of the principals of who logs in.
    """

    def __init__(self, named: Named, folder: Path, kind: str = "User") -> None:
        self.kind = kind
        self._named, self._folder = named, folder
        self._tools = KafkaTools(NEW, ["--bootstrap-server", gateway(named.cluster)], folder)
        self._root = named.java(CLUSTER, HUSH)
        self._config = self._tools.properties("root", self._root)

    def __call__(self, *what: str, take: bool = False) -> None:
        how = ("--remove", "--force") if take else ("--add",)
        self._tools("kafka-acls", *how, *what, "--command-config", self._config)

    def topic(self, name: str) -> None:
        """Create a topic, as who may."""
        create(self._named.cluster, self._folder, name, self._root)

    def topics_of(self, user: str, password: str) -> set[str]:
        """The topics that somebody sees here."""
        config = self._tools.properties(user, self._named.java(user, password))
        listed = self._tools("kafka-topics", "--list", "--command-config", config)
        return set(listed.split())


def at_both_ends(bodies: Mapping[ApiKey, dict[str, Any]]) -> list[Request]:
    """Requests in the first and the last version."""
    return [
        (key, version, body)
        for key, body in bodies.items()
        for version in sorted({APIS[key].min_version, APIS[key].max_version})
    ]


def refuses_as_brokers_do(named: Named) -> None:
    """Who may nothing asks everything, here and at a broker."""
    left_out = FREE | CONTROLLERS
    bodies = {key: body for key, body in BODIES.items() if key not in left_out} | OF_CONFIGS
    requests, eve = at_both_ends(bodies), User(named, EVE, TEMPT)
    answers = zip(requests, eve.asks_us(requests), eve.asks_broker(requests), strict=True)
    for (key, version, _), ours, theirs in answers:
        if key in ONE_ERROR:
            assert ours["error_code"] == theirs["error_code"], (key, version)
        else:
            assert ours == theirs, (key, version)


def permits_as_brokers_do(named: Named, grant: Grant) -> None:
    """Somebody asks here and at a broker who has rights of one topic, of those whose names begin
    alike, and none where they are denied.
    """
    for topic in ("seen", "written-1", "written-2", "secret"):
        grant.topic(topic)
    principal = f"{grant.kind}:{BOB}"
    bob = ("--allow-principal", principal)
    grant(*bob, "--operation", "Read", "--topic", "seen")
    written = ("--resource-pattern-type", "prefixed", "--topic", "written-")
    grant(*bob, "--operation", "Write", "--operation", "AlterConfigs", *written)
    grant("--deny-principal", principal, "--operation", "All", "--topic", "written-2")
    grant(*bob, "--operation", "Describe", "--group", "g")
    grant(*bob, "--operation", "Alter", "--cluster")
    user = User(named, BOB, BUILD)
    wait_for("what may be seen", lambda: _names(user.asks_us) == {"seen", "written-1"})
    wait_for("it at the broker", lambda: _names(user.asks_broker) == {"seen", "written-1"})
    coordinator = (ApiKey.FIND_COORDINATOR, 0, {"key": "g"})
    wait_for("the coordinator", lambda: user.asks_us([coordinator])[0]["error_code"] == 0)
    wait_for("us as such", lambda: coordinated_here(named.cluster, "g"))
    asked = ["seen", "written-1", "written-2", "secret", "none"]
    both: dict[str, Any] = {
        "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
        "allow_auto_topic_creation": True,
    }
    named_topics = [{"name": name, "topic_id": None} for name in asked]
    resources = [{"resource_type": 2, "resource_name": name} for name in asked]
    requests: list[Request] = [
        *((ApiKey.METADATA, version, both | {"topics": named_topics}) for version in (1, 8, 12)),
        *((ApiKey.METADATA, version, both | {"topics": None}) for version in (1, 10, 12)),
        (ApiKey.METADATA, 0, {"topics": []}),
        (ApiKey.DESCRIBE_CLUSTER, 1, {"include_cluster_authorized_operations": True}),
        (ApiKey.DESCRIBE_CONFIGS, 4, {"resources": resources}),
        (ApiKey.FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": ["g", "h"]}),
    ]
    for request, ours, theirs in zip(
        requests, user.asks_us(requests), user.asks_broker(requests), strict=True
    ):
        assert ours == theirs, request


def _names(ask: Callable[[Sequence[Request]], list[Any]]) -> set[str]:
    (answer,) = ask([(ApiKey.METADATA, 12, {"topics": None})])
    return {topic["name"] for topic in answer["topics"]}
