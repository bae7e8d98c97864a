"""Requests about groups and offsets of which a part may be asked: what is asked behind the guard,
and what becomes of the answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.gateway.rights.guard import Guard
from streaming.security.acls import ANY, Acl, AclTable, Operation, Pattern, ResourceType
from streaming.security.authorizer import AclAuthorizer, Authorizer, operation_bits
from streaming.wire.apis import ApiKey
from streaming.wire.requests import decode_by_schema, encode_request
from streaming.wire.responses import decode_response
from tests.unit.gateway.behind import CLIENT, AskedFor, Behind
from tests.unit.gateway.support import FakeCluster

GROUP, TOPIC = ResourceType.GROUP, ResourceType.TOPIC
TOPIC_DENIED = ProtocolError.TOPIC_AUTHORIZATION_FAILED
GROUP_DENIED = ProtocolError.GROUP_AUTHORIZATION_FAILED
READS = {(GROUP, "g"): Operation.READ, (TOPIC, "seen"): Operation.READ}


def ask(
    key: ApiKey,
    version: int,
    asked: dict[str, Any],
    answered: dict[str, Any],
    may: dict[tuple[ResourceType, str], Operation],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the answer of a guard, and what was asked behind it."""
    authorizer = AclAuthorizer((), allow_without_acls=False)
    authorizer.take(
        AclTable(
            {
                Pattern(kind, name, prefixed=False): [Acl(CLIENT.principal, ANY, one, True)]
                for (kind, name), one in may.items()
            }
        )
    )
    request = encode_request(key, version, 9, "c", asked)

    async def answer(by: Authorizer) -> tuple[bytes, list[bytes]]:
        behind = Behind(answered)
        guard = Guard(behind, CLIENT, by, FakeCluster(), Counter())
        at_once = guard.at_once(key, request)
        assert at_once is None or behind.asked == []
        if at_once is not None:
            return at_once, []
        assert not guard.try_answer(key, request, "/10.0.0.1", lambda _: None)
        return await guard.answer(request), behind.asked

    found, behind = asyncio.run(answer(authorizer))
    assert asyncio.run(answer(AskedFor(authorizer))) == (found, behind)
    correlation_id, body = decode_response(key, version, found)
    assert correlation_id == 9
    return body, [decode_by_schema(one).body for one in behind]


def named(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "partitions": [{"partition_index": 3} | more]}


def codes(topics: list[dict[str, Any]]) -> dict[str, list[tuple[int, int]]]:
    return {
        topic["name"]: [(one["partition_index"], one["error_code"]) for one in topic["partitions"]]
        for topic in topics
    }


OFFSET_APIS = [(ApiKey.OFFSET_COMMIT, 9), (ApiKey.OFFSET_COMMIT, 1), (ApiKey.TXN_OFFSET_COMMIT, 3)]


@pytest.mark.parametrize(("key", "version"), [*OFFSET_APIS, (ApiKey.OFFSET_DELETE, 0)])
def test_offsets_of_topics_that_may_be_read_are_changed(key: ApiKey, version: int) -> None:
    offset = {} if key is ApiKey.OFFSET_DELETE else {"committed_offset": 5}
    topics = [named("seen", **offset), named("secret", **offset)]
    may = READS | {(ResourceType.TRANSACTIONAL_ID, "x"): Operation.WRITE}
    may[GROUP, "g"] = Operation.DELETE if key is ApiKey.OFFSET_DELETE else Operation.READ
    asked = {"group_id": "g", "topics": topics}
    if key is ApiKey.TXN_OFFSET_COMMIT:
        asked["transactional_id"] = "x"
    answered = {"topics": [named("seen", error_code=0)]}
    body, (behind,) = ask(key, version, asked, answered, may)
    assert codes(body["topics"]) == {"seen": [(3, 0)], "secret": [(3, TOPIC_DENIED)]}
    assert [topic["name"] for topic in behind["topics"]] == ["seen"]


@pytest.mark.parametrize("names", [["secret"], ["seen", "secret"]])
@pytest.mark.parametrize("error", [ProtocolError.NONE, ProtocolError.NON_EMPTY_GROUP])
def test_what_is_wrong_with_a_group_is_told_instead_of_refused_topics(
    names: list[str], error: ProtocolError
) -> None:
    asked = {"group_id": "g", "topics": [named(name) for name in names]}
    seen = [name for name in names if name == "seen" and error is ProtocolError.NONE]
    answered = {"error_code": error, "topics": [named(name, error_code=0) for name in seen]}
    may = READS | {(GROUP, "g"): Operation.DELETE}
    body, (behind,) = ask(ApiKey.OFFSET_DELETE, 0, asked, answered, may)
    assert body["error_code"] == error
    refused = {"secret": [(3, TOPIC_DENIED)]} if error is ProtocolError.NONE else {}
    assert codes(body["topics"]) == {name: [(3, 0)] for name in seen} | refused
    assert [topic["name"] for topic in behind["topics"]] == [n for n in names if n == "seen"]


def test_a_transaction_needs_its_id_and_then_its_group() -> None:
    asked = {"transactional_id": "x", "group_id": "g", "topics": [named("seen")]}
    body, behind = ask(ApiKey.TXN_OFFSET_COMMIT, 3, asked, {}, READS)
    denied = ProtocolError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert codes(body["topics"]) == {"seen": [(3, denied)]} and not behind
    writes = {(ResourceType.TRANSACTIONAL_ID, "x"): Operation.WRITE}
    body, behind = ask(ApiKey.TXN_OFFSET_COMMIT, 3, asked, {}, writes)
    assert codes(body["topics"]) == {"seen": [(3, GROUP_DENIED)]} and not behind


def fetched(name: str) -> dict[str, Any]:
    return named(name, committed_offset=7, metadata="", error_code=0)


@pytest.mark.parametrize("version", [1, 2, 7])
@pytest.mark.parametrize("topics", [["seen", "secret"], ["secret"]])
def test_offsets_of_topics_that_may_be_described_are_told(version: int, topics: list[str]) -> None:
    listed = [{"name": name, "partition_indexes": [3]} for name in topics]
    seen = [name for name in topics if name == "seen"]
    answered = {"topics": [fetched(name) for name in seen], "error_code": 0}
    asked = {"group_id": "g", "topics": listed}
    body, (behind,) = ask(ApiKey.OFFSET_FETCH, version, asked, answered, READS)
    told = {"seen": [(3, 0)], "secret": [(3, TOPIC_DENIED)]}
    assert codes(body["topics"]) == {name: told[name] for name in topics}
    assert [one["name"] for one in behind["topics"]] == seen


def test_where_no_offset_may_be_known_it_is_told_who_coordinates_the_group() -> None:
    listed = [{"name": "secret", "partition_indexes": [3]}]
    answered = {"topics": [], "error_code": ProtocolError.NOT_COORDINATOR}
    asked = {"group_id": "g", "topics": listed}
    body, _ = ask(ApiKey.OFFSET_FETCH, 7, asked, answered, READS)
    assert (body["topics"], body["error_code"]) == ([], ProtocolError.NOT_COORDINATOR)


def test_all_offsets_of_a_group_are_those_that_may_be_known() -> None:
    answered = {"topics": [fetched("seen"), fetched("secret")], "error_code": 0}
    asked = {"group_id": "g", "topics": None}
    body, (behind,) = ask(ApiKey.OFFSET_FETCH, 7, asked, answered, READS)
    assert codes(body["topics"]) == {"seen": [(3, 0)]}
    assert behind["topics"] is None


def test_a_group_whose_offsets_may_not_be_known_is_refused() -> None:
    asked = {"group_id": "h", "topics": [{"name": "seen", "partition_indexes": [3]}]}
    body, behind = ask(ApiKey.OFFSET_FETCH, 7, asked, {}, READS)
    assert (body["topics"], body["error_code"], behind) == ([], GROUP_DENIED, [])
    body, behind = ask(ApiKey.OFFSET_FETCH, 1, asked, {}, READS)
    assert codes(body["topics"]) == {"seen": [(3, GROUP_DENIED)]} and not behind


def test_of_several_groups_each_is_judged_by_itself() -> None:
    listed = [{"name": name, "partition_indexes": [3]} for name in ("seen", "secret")]
    groups = [
        {"group_id": "g", "topics": listed},
        {"group_id": "h", "topics": listed},
        {"group_id": "i", "topics": None},
        {"group_id": "j", "topics": listed[:1]},
    ]
    answered = {
        "groups": [
            {"group_id": "g", "topics": [fetched("seen")], "error_code": 0},
            {"group_id": "i", "topics": [fetched("seen"), fetched("secret")], "error_code": 0},
            {"group_id": "j", "topics": [fetched("seen")], "error_code": 0},
        ]
    }
    may = READS | {(GROUP, one): Operation.DESCRIBE for one in ("i", "j")}
    body, (behind,) = ask(ApiKey.OFFSET_FETCH, 9, {"groups": groups}, answered, may)
    found = {one["group_id"]: (one["error_code"], codes(one["topics"])) for one in body["groups"]}
    both = {"seen": [(3, 0)], "secret": [(3, TOPIC_DENIED)]}
    assert found == {
        "g": (0, both),
        "h": (GROUP_DENIED, {}),
        "i": (0, {"seen": [(3, 0)]}),
        "j": (0, {"seen": [(3, 0)]}),
    }
    asked = {one["group_id"]: one["topics"] for one in behind["groups"]}
    assert asked.keys() == {"g", "i", "j"}
    assert [one["name"] for one in asked["g"]] == ["seen"] and asked["i"] is None


def test_groups_are_named_to_who_may_describe_them() -> None:
    listed = [{"group_id": name, "protocol_type": "consumer"} for name in ("g", "h")]
    answered = {"error_code": 0, "groups": listed}
    body, _ = ask(ApiKey.LIST_GROUPS, 4, {}, answered, READS)
    assert [one["group_id"] for one in body["groups"]] == ["g"]


def test_groups_are_described_with_what_may_be_done_with_them() -> None:
    described = {
        "error_code": 0,
        "group_id": "g",
        **dict.fromkeys(("group_state", "protocol_type", "protocol_data"), ""),
        "members": [],
    }
    asked = {"groups": ["g", "h"], "include_authorized_operations": True}
    answered = {"groups": [described | {"authorized_operations": 5}]}
    body, (behind,) = ask(ApiKey.DESCRIBE_GROUPS, 5, asked, answered, READS)
    found = {one["group_id"]: one for one in body["groups"]}
    expected = operation_bits((Operation.READ, Operation.DESCRIBE))
    assert found["g"]["authorized_operations"] == expected
    assert found["h"]["error_code"] == GROUP_DENIED
    assert behind["groups"] == ["g"]


def test_coordinators_are_named_for_the_groups_that_may_be_described() -> None:
    place = {"node_id": 1, "host": "b", "port": 9, "error_code": 0, "error_message": None}
    answered = {"coordinators": [place | {"key": "g"}]}
    asked = {"key_type": 0, "coordinator_keys": ["g", "h"]}
    body, (behind,) = ask(ApiKey.FIND_COORDINATOR, 4, asked, answered, READS)
    found = {one["key"]: (one["error_code"], one["node_id"]) for one in body["coordinators"]}
    assert found == {"g": (0, 1), "h": (GROUP_DENIED, -1)}
    assert behind["coordinator_keys"] == ["g"]


@pytest.mark.parametrize("topics", [["secret", "seen"], ["seen", "secret"], [None, "seen"]])
def test_a_group_that_is_named_twice_is_judged_twice(topics: list[str | None]) -> None:
    groups = [
        {"group_id": "g", "topics": name and [{"name": name, "partition_indexes": [3]}]}
        for name in topics
    ]
    answered = {
        "groups": [
            {
                "group_id": "g",
                "topics": [fetched(one) for one in ([name] if name else ["seen", "secret"])],
                "error_code": 0,
            }
            for name in topics
            if name != "secret"
        ]
    }
    if "secret" in topics:
        answered["groups"].insert(
            topics.index("secret"), {"group_id": "g", "topics": [], "error_code": 0}
        )
    body, (behind,) = ask(ApiKey.OFFSET_FETCH, 9, {"groups": groups}, answered, READS)
    told = {"seen": {"seen": [(3, 0)]}, "secret": {"secret": [(3, TOPIC_DENIED)]}}
    assert [codes(one["topics"]) for one in body["groups"]] == [
        told[name or "seen"] for name in topics
    ]
    expected = {"seen": ["seen"], "secret": [], None: None}
    assert [
        one["topics"] and [topic["name"] for topic in one["topics"]] for one in behind["groups"]
    ] == [expected[name] for name in topics]
