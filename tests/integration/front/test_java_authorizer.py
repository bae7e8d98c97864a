"""An authorizer of the brokers' own in a JVM: that of Kafka's own tests, which judges by the access
control lists in a real ZooKeeper.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from py4j import java_gateway, protocol
from pyspark.errors.exceptions import captured

from streaming.embedded.java_class import JavaClass
from streaming.embedded.kafka_jars import kafka_jars
from streaming.errors import ConfigurationError
from streaming.front.rights import check_authorizer, java_authorizer
from streaming.security.acls import CLUSTER_NAME, Client, Operation, ResourceType
from streaming.security.authorizer import AuthorizerFailed, Inquiry, Right
from streaming.security.java_authorizer import JavaAuthorizer
from streaming.security.started_authorizer import ServerInfo
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.zk.client import ZkSession
from tests.fixtures.jars_of_tests import AUTHORIZER, jars_of_tests
from tests.fixtures.waiting import wait_for

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

ALICE, ROOT = Client("User:alice", "10.0.0.1"), Client("User:root", "10.0.0.1")
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
HERE = Endpoint(
    listener="CLIENT", host="here", port=9092, security_protocol=SecurityProtocol.SASL_SSL
)

SERVER = ServerInfo(
    broker_id=7, cluster_id="a-cluster", inter_broker_listener="CLIENT", endpoints=[HERE]
)


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return jars_of_tests(tmp_path_factory.mktemp("authorizer") / "jars")


def settings(jars: Path, zookeeper: str, *overrides: str, name: str = AUTHORIZER) -> Settings:
    given = [
        f"authorizer.class.name={name}",
        f"authorizer.class.path={jars}/*",
        f"zookeeper.connect={zookeeper}",
        "super.users=User:root",
        *overrides,
    ]
    return load_settings(overrides=given, environment={})


@pytest.fixture
def authorizer(jars: Path, zookeeper: str) -> Iterator[JavaAuthorizer]:
    found = java_authorizer(settings(jars, zookeeper))
    assert found is not None
    found.start(SERVER)
    yield found
    found.close()


def asked(
    authorizer: JavaAuthorizer, rights: Iterable[Right], client: Client = ALICE, told: bool = True
) -> dict[Right, bool]:
    inquiry = Inquiry(client, "CLIENT", ApiKey.METADATA, 12, 5, "a client")
    return dict(asyncio.run(authorizer.ask(inquiry, dict.fromkeys(rights, told))))


def permit(session: ZkSession, kind: str, name: str, operation: str, who: str = "alice") -> None:
    entry = {
        "principal": f"User:{who}",
        "permissionType": "Allow",
        "operation": operation,
        "host": "*",
    }
    session.ensure_path(f"/kafka-acl/{kind}")
    session.create(f"/kafka-acl/{kind}/{name}", orjson.dumps({"version": 1, "acls": [entry]}))


def test_what_it_permits_is_permitted(jars: Path, zookeeper: str, zk_session: ZkSession) -> None:
    permit(zk_session, "Topic", "a", "Read")
    permit(zk_session, "Group", "g", "All")
    permit(zk_session, "Cluster", CLUSTER_NAME, "Alter")
    found = java_authorizer(settings(jars, zookeeper))
    assert found is not None and not found.ready
    found.start(replace(SERVER, cluster_id="", inter_broker_listener="another"))
    assert found.ready
    expected: dict[Right, bool] = {
        (READ, TOPIC, "a"): True,
        (DESCRIBE, TOPIC, "a"): True,
        (WRITE, TOPIC, "a"): False,
        (READ, TOPIC, "b"): False,
        (READ, TOPIC, "c"): False,
        (READ, GROUP, "a"): False,
        (READ, GROUP, "g"): True,
        (DESCRIBE, CLUSTER, CLUSTER_NAME): True,
        (Operation.CREATE, CLUSTER, CLUSTER_NAME): False,
        (READ, TOPIC, None): True,
        (WRITE, TOPIC, None): False,
    }
    try:
        assert asked(found, expected) == expected
        assert not any(asked(found, expected, Client("User:bob", "10.0.0.1")).values())
        assert all(asked(found, expected, ROOT).values())  # it knows them, too
        assert found.is_super_user(ROOT) and not found.is_super_user(ALICE)
        assert found.permits(ALICE, (READ, TOPIC, "a")) is None
    finally:
        found.close()


@pytest.mark.parametrize("many", [1, 2, 500])
def test_names_are_judged_one_by_one_whatever_they_hold(
    authorizer: JavaAuthorizer, many: int
) -> None:
    names = ["", " ", "\x01", "\x02\n", "a\\b", "ü, 🦊"] + [f"n{one}" for one in range(many)]
    rights: list[Right] = [(READ, GROUP, name) for name in names]
    assert asked(authorizer, rights[-many:]) == dict.fromkeys(rights[-many:], False)
    assert asked(authorizer, rights[1:], ROOT) == dict.fromkeys(rights[1:], True)


@pytest.mark.parametrize("version", ["2.0.1", "2.8.2"])
def test_an_authorizer_of_before_kafka_2_4(
    version: str, zookeeper: str, zk_session: ZkSession
) -> None:
    """Kafka's own of that time stands for those of others: brokers know it up to 2.8."""
    permit(zk_session, "Topic", "a", "Read")
    permit(zk_session, "Group", "ü, g", "All")
    config = {"zookeeper.connect": zookeeper, "super.users": "User:root"}
    older = JavaClass("kafka.security.auth.SimpleAclAuthorizer", f"{kafka_jars(version)}/*", config)
    found = JavaAuthorizer(older, ["User:root"])
    expected: dict[Right, bool] = {
        (READ, TOPIC, "a"): True,
        (DESCRIBE, TOPIC, "a"): True,
        (WRITE, TOPIC, "a"): False,
        (READ, TOPIC, "b"): False,
        (READ, GROUP, "ü, g"): True,
        (READ, GROUP, ""): False,
        (DESCRIBE, CLUSTER, CLUSTER_NAME): False,
        (READ, TOPIC, None): False,
    }
    try:
        found.check()
        found.start(SERVER)
        assert asked(found, expected) == expected
        assert not any(asked(found, expected, Client("User:bob", "10.0.0.1")).values())
        named = [right for right in expected if right[-1] is not None]
        assert all(asked(found, named, ROOT).values())
    finally:
        found.close()


def test_a_right_that_is_taken_is_gone(authorizer: JavaAuthorizer, zk_session: ZkSession) -> None:
    right: Right = (READ, TOPIC, "lent")
    assert not asked(authorizer, [right])[right]
    permit(zk_session, "Topic", "lent", "Read")

    def changed() -> bool:
        zk_session.create_sequential("/kafka-acl-changes/acl_changes_", b"Topic:lent")
        return asked(authorizer, [right])[right]

    wait_for("the right", changed)
    zk_session.delete("/kafka-acl/Topic/lent")
    wait_for("its end", lambda: not changed())


def test_a_jvm_that_is_gone_is_started_again(authorizer: JavaAuthorizer) -> None:
    right: Right = (READ, TOPIC, "a")
    assert asked(authorizer, [right], ROOT)[right]
    process = authorizer._jvm._process
    assert process is not None
    process.kill()
    process.wait(30)
    assert asked(authorizer, [right], ROOT)[right]


def test_an_authorizer_that_fails_says_nothing(authorizer: JavaAuthorizer) -> None:
    """Kafka's classes know of no such request."""
    inquiry = Inquiry(ALICE, "CLIENT", 9_999, 0, 5, None)
    with pytest.raises(AuthorizerFailed, match=r"the authorizer: .*9999"):
        asyncio.run(authorizer.ask(inquiry, {(READ, TOPIC, "a"): True}))


def test_what_java_raises_is_told_where_spark_has_a_jvm_too(
    authorizer: JavaAuthorizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyspark has py4j ask Spark's JVM about what any JVM raised."""
    asks_spark = captured.capture_sql_exception(protocol.get_return_value)
    monkeypatch.setattr(java_gateway, "get_return_value", asks_spark)
    test_an_authorizer_that_fails_says_nothing(authorizer)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no.such.Authorizer", r"no\.such\.Authorizer"),
        ("java.lang.String", r"it is no org\.apache\.kafka\.server\.authorizer\.Authorizer"),
        ("org.apache.kafka.server.authorizer.Authorizer", ""),
    ],
)
def test_a_class_that_is_no_authorizer_is_refused_before_the_start(
    jars: Path, zookeeper: str, name: str, reason: str
) -> None:
    check_authorizer(settings(jars, zookeeper))
    with pytest.raises(
        ConfigurationError, match=rf"^authorizer\.class\.name = {name} cannot be used \(.*{reason}"
    ):
        check_authorizer(settings(jars, zookeeper, name=name))


def test_what_it_is_configured_with_is_its_own(jars: Path, zookeeper: str, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("super.users=User:other\nacme.realm=a\n")
    found = java_authorizer(settings(jars, zookeeper, f"authorizer.config={file}"))
    assert found is not None
    assert found._class.config == {
        "authorizer.class.name": AUTHORIZER,
        "broker.id": "1000",
        "super.users": "User:other",
        "zookeeper.connect": zookeeper,
        "acme.realm": "a",
    }
    found.close()
    broken = settings(jars, zookeeper, "authorizer.config=/none.properties")
    with pytest.raises(ConfigurationError, match=r"cannot read /none\.properties"):
        java_authorizer(broken)
