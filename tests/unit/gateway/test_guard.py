"""Every request that the gateway serves, asked by somebody who may ask nothing, or something."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from streaming.gateway.calls import Answer, NotReady
from streaming.gateway.rights.guard import Guard
from streaming.gateway.rights.rules import FREE, RULES
from streaming.security.acls import ANY, Acl, AclTable, Operation, Pattern, ResourceType
from streaming.security.authorizer import AclAuthorizer, Authorizer, Inquiry
from streaming.wire.apis import APIS, GATEWAY_APIS, GROUP_APIS, PASSED_APIS, ApiKey
from streaming.wire.errors import MalformedFrame, UnsupportedApi
from streaming.wire.requests import encode_request, first_text
from streaming.wire.responses import decode_response
from tests.unit.gateway.behind import CLIENT, AskedFor, Behind
from tests.unit.gateway.bodies import BODIES, TOPIC_ID
from tests.unit.gateway.support import FakeCluster

REFUSALS = {29, 30, 31, 53}
FILTERS = {ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_DELEGATION_TOKEN}
"""What everybody may ask, and is told the part that it may know."""
FOR_ONESELF = {ApiKey.CREATE_DELEGATION_TOKEN}
"""What everybody may ask for himself."""
SERVED = GATEWAY_APIS | GROUP_APIS | PASSED_APIS
ENTIRELY = [
    (key, version)
    for key in sorted(RULES.keys() - FILTERS - FOR_ONESELF - {ApiKey.METADATA})
    for version in range(APIS[key].min_version, APIS[key].max_version + 1)
]


def everything() -> AclTable:
    """Everybody may do everything."""
    return AclTable(
        {
            Pattern(kind, ANY, prefixed=False): [Acl("User:*", ANY, Operation.ALL, True)]
            for kind in ResourceType
        }
    )


def guarded(behind: Behind, acls: AclTable, counters: Counter[str] | None = None) -> Guard:
    return guarded_by(by_lists(acls), behind, Counter() if counters is None else counters)


def by_lists(acls: AclTable) -> AclAuthorizer:
    authorizer = AclAuthorizer((), allow_without_acls=False)
    authorizer.take(acls)
    return authorizer


def guarded_by(authorizer: Authorizer, behind: Behind, counters: Counter[str]) -> Guard:
    cluster = FakeCluster()
    cluster.create("t", [[1, 2]], "dHR0dHR0dHR0dHR0dHR0dA")
    return Guard(behind, CLIENT, authorizer, cluster, counters)


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
    more = {"include_authorized_operations": False} if key is ApiKey.DESCRIBE_GROUPS else {}
    request = request_of(key, version, **more)
    for behind, answer, asked in (
        (Behind(), b"at once", 1),
        (Behind(quick=False), b"without a task", 2),
        (Behind(quick=False, taking=False), b"answer", 3),
    ):
        assert answered(guarded(behind, everything()), key, request) == answer
        assert behind.asked == [request] * asked


def answered(guard: Guard, key: ApiKey, request: bytes) -> bytes:
    """What a connection sends."""
    answers: list[bytes] = []
    at_once = guard.at_once(key, request)
    if at_once is not None:
        return at_once
    if guard.try_answer(key, request, "/10.0.0.1", answers.append):
        return answers.pop()
    return asyncio.run(guard.answer(request))


@pytest.mark.parametrize(("key", "version"), ENTIRELY)
def test_what_has_to_be_asked_for_is_refused_as_what_is_known(key: ApiKey, version: int) -> None:
    request, by, behind = request_of(key, version), AskedFor(by_lists(AclTable())), Behind()
    known, asked_for = Counter[str](), Counter[str]()
    refused = answered(guarded(behind, AclTable(), known), key, request)
    assert answered(guarded_by(by, behind, asked_for), key, request) == refused
    assert behind.asked == [] and asked_for == known
    client_id = None if (key, version) == (ApiKey.CONTROLLED_SHUTDOWN, 0) else "c"
    assert {inquiry for inquiry, _ in by.asked} == {
        Inquiry(CLIENT, "CLIENT", key, version, 7, client_id)
    }


@pytest.mark.parametrize(("key", "version"), ENTIRELY)
def test_what_may_be_asked_goes_through_once_that_is_known(key: ApiKey, version: int) -> None:
    more = {"include_authorized_operations": False} if key is ApiKey.DESCRIBE_GROUPS else {}
    request, by = request_of(key, version, **more), AskedFor(by_lists(everything()))
    of_members = key in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT)
    for behind, answer in (
        (Behind(), b"at once"),
        (Behind(quick=False), b"without a task"),
        (Behind(quick=False, taking=False), b"answer"),
    ):
        found = answered(guarded_by(by, behind, Counter()), key, request)
        assert found == (answer if of_members else b"answer")
        assert set(behind.asked) == {request}


def test_a_client_asks_again_when_nobody_says_what_it_may(
    caplog: pytest.LogCaptureFixture,
) -> None:
    by, behind = AskedFor(by_lists(everything())), Behind()
    by.failing = True
    guard = guarded_by(by, behind, Counter())
    for _ in range(2):
        with pytest.raises(NotReady, match="the authorizer: it is full"):
            answered(guard, ApiKey.HEARTBEAT, request_of(ApiKey.HEARTBEAT, 4))
    assert behind.asked == [] and caplog.messages == ["the authorizer: it is full"] * 2
    by.failing = False
    assert answered(guard, ApiKey.HEARTBEAT, request_of(ApiKey.HEARTBEAT, 4)) == b"at once"


def test_who_hangs_up_while_a_request_waits_is_not_answered() -> None:
    held: list[Answer] = []

    class Waiting(Behind):
        def try_answer(self, _: int, request_frame: bytes, __: str, answer: Answer) -> bool:
            held.append(answer)
            return True

    async def hang_up() -> None:
        by = AskedFor(by_lists(everything()))
        guard = guarded_by(by, Waiting(quick=False), Counter())
        request = request_of(ApiKey.JOIN_GROUP, 9)
        assert guard.at_once(ApiKey.JOIN_GROUP, request) is None
        assert not guard.try_answer(ApiKey.JOIN_GROUP, request, "/10.0.0.1", lambda _: None)
        waiting = asyncio.get_running_loop().create_task(guard.answer(request))
        while not held:
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        held[0](b"too late")

    asyncio.run(hang_up())


def test_of_what_was_asked_nothing_is_kept() -> None:
    names = [{"name": f"t{number}", "topic_id": None} for number in range(3_000)]
    body = {"topics": names, "allow_auto_topic_creation": False}
    metadata = encode_request(ApiKey.METADATA, 12, 1, "c", body)
    members = [{"member_id": str(number), "assignment": b"a"} for number in range(3_000)]
    sync = request_of(ApiKey.SYNC_GROUP, 5, assignments=members)
    for acls in (AclTable(), everything()):
        for behind in (Behind({}), Behind({}, quick=False), Behind({}, quick=False, taking=False)):
            guard = guarded(behind, acls)
            for key, request in ((ApiKey.METADATA, metadata), (ApiKey.SYNC_GROUP, sync)):
                answered(guard, key, request)
                assert guard._judged is None


def test_the_same_name_many_times_is_judged_and_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counters = Counter[str]()
    guard = guarded(Behind({}), AclTable(), counters)
    for names, lines in ((["a"] * 5_000, 1), ([f"a{number}" for number in range(5_000)], 21)):
        topics = [{"name": name, "topic_id": None} for name in names]
        body = {"topics": topics, "allow_auto_topic_creation": False}
        caplog.clear()
        with caplog.at_level("INFO"):
            answered(guard, ApiKey.METADATA, encode_request(ApiKey.METADATA, 12, 1, "c", body))
        assert len(caplog.messages) == lines
    assert counters["operations_denied"] == 5_001


def test_a_group_is_read_off_the_start_of_a_request() -> None:
    for key in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP):
        for version in range(APIS[key].min_version, APIS[key].max_version + 1):
            assert first_text(request_of(key, version)) == "g"
            with pytest.raises(MalformedFrame):
                first_text(request_of(key, version)[:12])


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


@pytest.mark.parametrize("version", [4, 12, 13, 17])
def test_who_says_that_it_follows_needs_the_right_to(version: int) -> None:
    """Even where it names no topic: what follows remembers who asked."""
    replica = {"replica_id": 7, "replica_state": {"replica_id": 7, "replica_epoch": 1}}
    request = encode_request(ApiKey.FETCH, version, 1, "c", replica | {"topics": []})
    behind = Behind()
    answer = guarded(behind, AclTable()).at_once(ApiKey.FETCH, request)
    assert answer is not None and behind.asked == []
    assert decode_response(ApiKey.FETCH, version, answer)[1]["responses"] == []
