"""Every request that the gateway serves, asked by somebody who may ask nothing, or something."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from streaming.gateway.calls import Answer, BoundListener
from streaming.gateway.rights.guard import Guard
from streaming.gateway.rights.rules import FREE, RULES
from streaming.security.acls import ANY, Acl, AclTable, Client, Operation, Pattern, ResourceType
from streaming.security.authorizer import Authorizer
from streaming.wire.apis import APIS, GATEWAY_APIS, GROUP_APIS, PASSED_APIS, ApiKey
from streaming.wire.errors import UnsupportedApi
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from tests.unit.gateway.bodies import BODIES, TOPIC_ID
from tests.unit.gateway.support import FakeCluster

CLIENT = Client("User:eve", "10.0.0.1")
REFUSALS = {29, 30, 31, 53}
FILTERS = {ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_CLUSTER}
"""What everybody may ask, and is told the part that it may know."""
SERVED = GATEWAY_APIS | GROUP_APIS | PASSED_APIS
ENTIRELY = [
    (key, version)
    for key in sorted(RULES.keys() - FILTERS - {ApiKey.METADATA})
    for version in range(APIS[key].min_version, APIS[key].max_version + 1)
]


class Behind:
    """What is behind a guard: notes what it is asked, and answers nothing of weight."""

    listener = BoundListener("CLIENT", "here", 1)

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def largest_bytes(self, configured_bytes: int) -> int:
        return configured_bytes

    def at_once(self, _: int, request_frame: bytes) -> bytes | None:
        self.asked.append(request_frame)
        return b"at once"

    def try_answer(self, _: int, request_frame: bytes, __: str, answer: Answer) -> bool:
        self.asked.append(request_frame)
        answer(b"without a task")
        return True

    async def answer(self, request_frame: bytes) -> bytes:
        self.asked.append(request_frame)
        return b"answer"


def table(*granted: tuple[ResourceType, str, Operation]) -> AclTable:
    return AclTable(
        {
            Pattern(kind, name, prefixed=False): [Acl(CLIENT.principal, ANY, operation, True)]
            for kind, name, operation in granted
        }
    )


def guarded(behind: Behind, acls: AclTable, counters: Counter[str] | None = None) -> Guard:
    authorizer = Authorizer((), allow_without_acls=False)
    authorizer.take(acls)
    cluster = FakeCluster()
    cluster.create("t", [[1, 2]], "dHR0dHR0dHR0dHR0dHR0dA")
    return Guard(behind, CLIENT, authorizer, cluster, Counter() if counters is None else counters)


def errors_in(body: Any) -> set[int]:
    """All error codes of a response."""
    if isinstance(body, list):
        return {code for one in body for code in errors_in(one)}
    if not isinstance(body, dict):
        return set()
    here = {body["error_code"]} if "error_code" in body else set()
    return here | {code for one in body.values() for code in errors_in(one)}


def request_of(key: ApiKey, version: int, **more: Any) -> bytes:
    body = BODIES[key] | more
    if key is ApiKey.FETCH and version >= 13:
        body = {"topics": [{"topic_id": TOPIC_ID, "partitions": [{"partition": 0}]}]}
    return encode_request(key, version, 7, "c", body)


def test_each_api_has_a_rule_or_is_free() -> None:
    assert not RULES.keys() & FREE
    assert RULES.keys() | FREE == SERVED


def test_what_has_no_rule_is_not_served() -> None:
    guard = guarded(Behind(), AclTable())
    with pytest.raises(UnsupportedApi):
        guard.at_once(ApiKey.LEADER_AND_ISR, encode_request(ApiKey.STOP_REPLICA, 0, 1, "c", {}))


@pytest.mark.parametrize(("key", "version"), ENTIRELY)
def test_who_may_nothing_is_refused_at_once(key: ApiKey, version: int) -> None:
    behind, counters = Behind(), Counter[str]()
    guard = guarded(behind, AclTable(), counters)
    answer = guard.at_once(key, request_of(key, version))
    assert answer is not None and behind.asked == []
    correlation_id, body = decode_response(key, version, answer)
    assert correlation_id == 7
    found = errors_in(body)
    if key is ApiKey.DESCRIBE_LOG_DIRS and version < 3:  # there is no place for an error
        assert body["results"] == []
    else:
        assert found & REFUSALS and found <= REFUSALS | {0}, body
    assert counters["operations_denied"] > 0


@pytest.mark.parametrize(("key", "version"), ENTIRELY)
def test_what_may_be_asked_goes_through_as_it_came(key: ApiKey, version: int) -> None:
    everything = AclTable(
        {
            Pattern(kind, ANY, prefixed=False): [Acl("User:*", ANY, Operation.ALL, True)]
            for kind in ResourceType
        }
    )
    behind, answers = Behind(), list[bytes]()
    guard = guarded(behind, everything)
    more = {"include_authorized_operations": False} if key is ApiKey.DESCRIBE_GROUPS else {}
    request = request_of(key, version, **more)
    assert guard.at_once(key, request) == b"at once"
    assert guard.try_answer(key, request, "/10.0.0.1", answers.append)
    assert asyncio.run(guard.answer(request)) == b"answer"
    assert behind.asked == [request] * 3
    assert answers == [b"without a task"]


def test_a_refusal_is_one_line_as_kafkas_authorizer_writes_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    named = [{"name": "a\nPrincipal = User:root", "topic_id": None}]
    asked = {"topics": named, "allow_auto_topic_creation": False}
    with caplog.at_level("INFO"):
        guarded(Behind(), AclTable()).at_once(
            ApiKey.METADATA, encode_request(ApiKey.METADATA, 12, 1, "c", asked)
        )
    assert caplog.messages == [
        "Principal = User:eve is Denied Operation = Describe from host = 10.0.0.1 on resource ="
        r" Topic:LITERAL:a\nPrincipal = User:root for request = Metadata"
    ]
