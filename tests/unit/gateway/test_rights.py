"""What somebody who may do some things gets of the gateway: that, and nothing of the rest."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from state.topic_ids import topic_id_from_text
from streaming.gateway.operations import NOT_ASKED, TOPIC_OPERATIONS
from streaming.gateway.passing.creation import AutoCreation
from streaming.security.acls import (
    ANY,
    CLUSTER_NAME,
    Acl,
    AclTable,
    Operation,
    Pattern,
    ResourceType,
)
from streaming.security.authorizer import AclAuthorizer, operation_bits
from streaming.security.principals import ANONYMOUS
from streaming.wire.apis import ApiKey
from tests.unit.gateway.behind import AskedFor
from tests.unit.gateway.support import Rig, with_gateway

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
DENIED, UNKNOWN_ID = ProtocolError.TOPIC_AUTHORIZATION_FAILED, ProtocolError.UNKNOWN_TOPIC_ID
Scenario = Callable[[Rig], Awaitable[None]]


def authorizer(**operations: Operation) -> AclAuthorizer:
    """Anonymous may do one thing with each topic that is named here."""
    lists = {
        Pattern(TOPIC, name, prefixed=False): [Acl(ANONYMOUS, ANY, one, True)]
        for name, one in operations.items()
    }
    found = AclAuthorizer((), allow_without_acls=False)
    found.take(AclTable(lists))
    return found


def run(scenario: Scenario, by: AclAuthorizer) -> None:
    async def with_topics(rig: Rig) -> None:
        for name in ("seen", "secret"):
            rig.cluster.create(name, [[1, 2]])
        await scenario(rig)

    for authorizer in (by, AskedFor(by)):
        with_gateway(with_topics, authorizer=authorizer)


def names(answer: dict[str, Any]) -> dict[str | None, int]:
    return {one["name"]: one["error_code"] for one in answer["topics"]}


def wanted(*topics: str, create: bool = False) -> dict[str, Any]:
    listed = [{"name": name, "topic_id": None} for name in topics]
    return {"topics": listed, "allow_auto_topic_creation": create}


SEES_ONE = {"seen": Operation.DESCRIBE}


@pytest.mark.parametrize("version", [0, 1, 9, 12])
@pytest.mark.parametrize("controller", [True, False])
def test_all_topics_are_those_that_may_be_described(version: int, controller: bool) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.controller = controller
        asked = {"topics": [] if version == 0 else None}
        answer = await rig.ask(ApiKey.METADATA, version, asked)
        assert names(answer) == {"seen": 0}
        assert {broker["node_id"] for broker in answer["brokers"]} > {1}

    run(scenario, authorizer(**SEES_ONE))


@pytest.mark.parametrize("version", [0, 1, 12])
def test_who_may_describe_no_topic_sees_none(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        asked = {"topics": [] if version == 0 else None}
        assert names(await rig.ask(ApiKey.METADATA, version, asked)) == {}
        answer = await rig.ask(ApiKey.METADATA, version, wanted("seen", "none"))
        assert names(answer) == {"seen": DENIED, "none": DENIED}

    run(scenario, authorizer())


def test_a_topic_that_may_not_be_described_is_refused_whether_there_is_one() -> None:
    async def scenario(rig: Rig) -> None:
        answer = await rig.ask(ApiKey.METADATA, 12, wanted("seen", "secret", "none"))
        assert names(answer) == {"seen": 0, "secret": DENIED, "none": DENIED}
        for one in answer["topics"]:
            assert (one["topic_id"] is None) is (one["name"] != "seen")

    run(scenario, authorizer(**SEES_ONE))


def test_the_name_of_a_topic_is_not_found_out_by_its_id() -> None:
    async def scenario(rig: Rig) -> None:
        known = {name: _id(rig, name) for name in ("seen", "secret")}
        ids = [*known.values(), uuid.UUID(int=5)]
        asked = {"topics": [{"name": None, "topic_id": one} for one in ids]}
        answer = await rig.ask(ApiKey.METADATA, 12, asked)
        found = {one["topic_id"]: (one["name"], one["error_code"]) for one in answer["topics"]}
        assert found == {
            known["seen"]: ("seen", 0),
            known["secret"]: (None, DENIED),
            uuid.UUID(int=5): (None, UNKNOWN_ID),
        }

    run(scenario, authorizer(**SEES_ONE))


def _id(rig: Rig, topic: str) -> uuid.UUID:
    text = rig.cluster.known.topic_ids[topic]
    assert text is not None
    return uuid.UUID(bytes=topic_id_from_text(text))


UNKNOWN = ProtocolError.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that a broker is asked to create."""
    asked: list[str] = []

    async def of_topics(_: AutoCreation, __: str, names: Iterable[str]) -> dict[str, int]:
        asked.extend(names)
        return {}

    monkeypatch.setattr(AutoCreation, "of_topics", of_topics)
    return asked


@pytest.mark.parametrize("controller", [True, False])
@pytest.mark.parametrize("version", [0, 3, 12])
def test_who_may_not_create_a_topic_does_not_by_asking_for_it(
    version: int, controller: bool, created: list[str]
) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.controller = controller
        answer = await rig.ask(ApiKey.METADATA, version, wanted("seen", "new", create=True))
        assert names(answer) == {"seen": 0, "new": UNKNOWN}
        assert created == []
        assert rig.gateway.counters["operations_denied"] == controller

    run(scenario, authorizer(seen=Operation.READ, new=Operation.READ))


def test_who_may_create_a_topic_does(created: list[str]) -> None:
    async def scenario(rig: Rig) -> None:
        body = wanted("seen", "new", "other", create=True)
        assert names(await rig.ask(ApiKey.METADATA, 12, body)) == {
            "seen": 0,
            "new": UNKNOWN,
            "other": DENIED,
        }
        assert created == ["new"]
        created.clear()

    run(scenario, authorizer(seen=Operation.READ, new=Operation.ALL))


def test_operations_are_those_that_are_allowed() -> None:
    async def scenario(rig: Rig) -> None:
        both = {
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": True,
        }
        answer = await rig.ask(ApiKey.METADATA, 10, wanted("seen", "secret") | both)
        told = {one["name"]: one["topic_authorized_operations"] for one in answer["topics"]}
        read = operation_bits((Operation.READ, Operation.DESCRIBE))
        assert told == {"seen": read, "secret": NOT_ASKED}
        assert answer["cluster_authorized_operations"] == 0

    run(scenario, authorizer(seen=Operation.READ))


def test_who_may_describe_the_cluster_is_told_what_it_may_do_with_it() -> None:
    by = authorizer()
    mine = Acl(ANONYMOUS, "127.0.0.1", Operation.ALTER, True)
    by.take(AclTable({Pattern(ResourceType.CLUSTER, CLUSTER_NAME, prefixed=False): [mine]}))

    async def scenario(rig: Rig) -> None:
        asked = {"include_cluster_authorized_operations": True}
        answer = await rig.ask(ApiKey.DESCRIBE_CLUSTER, 0, asked)
        expected = operation_bits((Operation.ALTER, Operation.DESCRIBE))
        assert answer["cluster_authorized_operations"] == expected

    run(scenario, by)


def test_of_several_topics_those_are_created_that_may_be() -> None:
    async def scenario(rig: Rig) -> None:
        one = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        topics = [one | {"name": name} for name in ("mine", "other")]
        answer = await rig.ask(ApiKey.CREATE_TOPICS, 7, {"topics": topics, "timeout_ms": 1000})
        assert names(answer) == {"mine": 0, "other": DENIED}
        (mine,) = [one for one in answer["topics"] if one["name"] == "mine"]
        assert (mine["num_partitions"], mine["topic_config_error_code"]) == (-1, DENIED)
        (created,) = rig.cluster.payloads("create_topic_requested")[2:]
        assert created["topic"] == "mine"

    run(scenario, authorizer(mine=Operation.CREATE))


def test_a_reassignment_that_is_refused_is_so_partition_by_partition() -> None:
    async def scenario(rig: Rig) -> None:
        moves = [{"partition_index": one, "replicas": [2, 1]} for one in (0, 7)]
        asked = {"timeout_ms": 1000, "topics": [{"name": "seen", "partitions": moves}]}
        answer = await rig.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, asked)
        (topic,) = answer["responses"]
        error = ProtocolError.CLUSTER_AUTHORIZATION_FAILED
        refused = (error, "Cluster authorization failed.")
        assert (answer["error_code"], answer["error_message"]) == refused
        assert topic["name"] == "seen"
        assert {
            one["partition_index"]: (one["error_code"], one["error_message"])
            for one in topic["partitions"]
        } == {0: refused, 7: refused}
        assert rig.cluster.payloads("alter_reassignments_requested") == []

    run(scenario, authorizer(**SEES_ONE))


@pytest.mark.parametrize("version", [5, 6])
def test_of_several_topics_those_are_deleted_that_may_be(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        asked = [{"name": name, "topic_id": None} for name in ("seen", "secret")]
        body = {"topics": asked, "topic_names": ["seen", "secret"], "timeout_ms": 1000}
        answer = await rig.ask(ApiKey.DELETE_TOPICS, version, body)
        found = {one["name"]: one["error_code"] for one in answer["responses"]}
        assert found == {"seen": 0, "secret": DENIED}
        (deleted,) = rig.cluster.payloads("delete_topic_requested")
        assert deleted["topic"] == "seen"

    run(scenario, authorizer(seen=Operation.DELETE, secret=Operation.DESCRIBE))


def test_who_is_refused_to_delete_an_id_hears_the_name_only_if_it_may_know_it() -> None:
    async def scenario(rig: Rig) -> None:
        ids = {name: _id(rig, name) for name in ("seen", "secret")} | {"none": uuid.UUID(int=5)}
        asked = [{"name": None, "topic_id": one} for one in ids.values()]
        answer = await rig.ask(ApiKey.DELETE_TOPICS, 6, {"topics": asked, "timeout_ms": 1000})
        found = {one["topic_id"]: (one["name"], one["error_code"]) for one in answer["responses"]}
        assert found == {
            ids["seen"]: ("seen", DENIED),
            ids["secret"]: (None, DENIED),
            ids["none"]: (None, UNKNOWN_ID),
        }

    run(scenario, authorizer(**SEES_ONE))


def test_who_becomes_a_super_user_may_everything() -> None:
    async def scenario(rig: Rig) -> None:
        asked = wanted("secret") | {"include_topic_authorized_operations": True}
        (secret,) = (await rig.ask(ApiKey.METADATA, 12, asked))["topics"]
        assert (secret["error_code"], secret["topic_authorized_operations"]) == (
            0,
            TOPIC_OPERATIONS,
        )

    run(scenario, AclAuthorizer({ANONYMOUS}, allow_without_acls=False))


def test_a_list_counts_for_connections_that_were_there_before() -> None:
    by = authorizer()

    async def scenario(rig: Rig) -> None:
        client = await rig.client()
        for acls, expected in ((AclTable(), DENIED), (_all_topics(), 0), (AclTable(), DENIED)):
            by.take(acls)
            assert names(await client.ask(ApiKey.METADATA, 12, wanted("secret"))) == {
                "secret": expected
            }

    run(scenario, by)


def _all_topics() -> AclTable:
    return AclTable(
        {Pattern(TOPIC, ANY, prefixed=False): [Acl(ANONYMOUS, ANY, Operation.ALL, True)]}
    )


def test_a_producer_without_transactions_needs_one_topic_to_write_to() -> None:
    async def scenario(rig: Rig) -> None:
        asked = {"transactional_id": None, "transaction_timeout_ms": 1}
        assert (await rig.ask(ApiKey.INIT_PRODUCER_ID, 4, asked))["error_code"] == 0

    run(scenario, authorizer(seen=Operation.WRITE))


@pytest.mark.parametrize("api", [ApiKey.DESCRIBE_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS])
def test_configs_of_brokers_are_the_clusters(api: ApiKey) -> None:
    async def scenario(rig: Rig) -> None:
        own: dict[str, Any] = {"resource_type": 4, "resource_name": "1000"}
        if api is ApiKey.DESCRIBE_CONFIGS:
            own["configuration_keys"] = None
        else:
            own["configs"] = []
        answer = await rig.ask(api, 1, {"resources": [own]})
        (one,) = answer["results" if api is ApiKey.DESCRIBE_CONFIGS else "responses"]
        assert one["error_code"] == ProtocolError.CLUSTER_AUTHORIZATION_FAILED
        assert one["resource_name"] == "1000" and not one.get("configs")

    run(scenario, authorizer(**SEES_ONE))


def test_an_id_is_deleted_by_who_may_also_know_its_name() -> None:
    by = authorizer()
    mine = [
        Acl(ANONYMOUS, ANY, Operation.DELETE, True),
        Acl(ANONYMOUS, ANY, Operation.DESCRIBE, False),
    ]
    by.take(AclTable({Pattern(TOPIC, "secret", prefixed=False): mine}))

    async def scenario(rig: Rig) -> None:
        asked = [{"name": None, "topic_id": _id(rig, "secret")}]
        answer = await rig.ask(ApiKey.DELETE_TOPICS, 6, {"topics": asked, "timeout_ms": 1000})
        assert [(one["name"], one["error_code"]) for one in answer["responses"]] == [(None, DENIED)]
        assert rig.cluster.payloads("delete_topic_requested") == []

    run(scenario, by)


@pytest.mark.parametrize("version", [1, 3])
def test_to_ask_for_all_topics_creates_none(version: int, created: list[str]) -> None:
    """A topic may go between judging and answering, and old versions always ask for creation."""
    by = authorizer(**SEES_ONE)
    before = by.permits

    async def scenario(rig: Rig) -> None:
        def permits(*asked: Any) -> bool:
            if asked[-1][-1] == "seen" in rig.cluster.known.topic_ids:
                rig.cluster.remove("seen")
                return True
            return before(*asked)

        by.permits = permits
        answer = await rig.ask(ApiKey.METADATA, version, {"topics": None})
        assert set(names(answer)) <= {"seen"}
        assert created == []

    run(scenario, by)


def test_a_name_that_cannot_be_is_no_secret() -> None:
    async def scenario(rig: Rig) -> None:
        answer = await rig.ask(ApiKey.METADATA, 12, wanted("no name!", create=True))
        assert names(answer) == {"no name!": ProtocolError.INVALID_TOPIC_EXCEPTION}

    run(scenario, authorizer(**{"no name!": Operation.DESCRIBE}))


@pytest.mark.parametrize(("replica", "error"), [(-1, "NOT_LEADER_OR_FOLLOWER"), (7, "DENIED")])
def test_where_epochs_ended_is_told_to_who_may_describe_and_to_followers(
    replica: int, error: str
) -> None:
    """Who says that it follows is remembered, so that takes the right to act for the cluster."""
    told = DENIED if error == "DENIED" else ProtocolError[error]

    async def scenario(rig: Rig) -> None:
        partitions = [{"partition": 1, "current_leader_epoch": 3, "leader_epoch": 2}]
        topics = [{"topic": name, "partitions": partitions} for name in ("seen", "secret")]
        asked = {"replica_id": replica, "topics": topics}
        answer = await rig.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, asked)
        said = {
            topic["topic"]: [(one["partition"], one["error_code"]) for one in topic["partitions"]]
            for topic in answer["topics"]
        }
        assert said == {"seen": [(1, told)], "secret": [(1, DENIED)]}

    run(scenario, authorizer(seen=Operation.DESCRIBE))


def test_before_version_3_who_is_named_like_a_fetcher_asks_as_a_follower() -> None:
    async def scenario(rig: Rig) -> None:
        client = await rig.client()
        client.client_id = "broker-7-fetcher-0"
        partitions = [{"partition": 1, "current_leader_epoch": 3, "leader_epoch": 2}]
        asked = {"topics": [{"topic": "seen", "partitions": partitions}]}
        (topic,) = (await client.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, asked))["topics"]
        assert [one["error_code"] for one in topic["partitions"]] == [DENIED]

    run(scenario, authorizer(seen=Operation.DESCRIBE))
