"""JoinGroup and SyncGroup without the schema codec say what the schema codec says, also of damaged
bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.protocol_errors import ProtocolError
from streaming.wire.apis import APIS, Api, ApiKey
from streaming.wire.errors import MalformedFrame
from streaming.wire.joining import (
    decode_join_group,
    decode_sync_group,
    encode_join_group,
    encode_sync_group,
)

JOIN, SYNC = APIS[ApiKey.JOIN_GROUP], APIS[ApiKey.SYNC_GROUP]
TEXT = st.text(max_size=150)
NULLABLE = st.none() | TEXT
INT32 = st.integers(-(2**31), 2**31 - 1)
INT16 = st.integers(-(2**15), 2**15 - 1)
BYTES = st.binary(max_size=150)


def structs(max_size: int = 3, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.fixed_dictionaries(fields), max_size=max_size)


JOIN_REQUEST = st.fixed_dictionaries(
    {
        "group_id": TEXT,
        "session_timeout_ms": INT32,
        "rebalance_timeout_ms": INT32,
        "member_id": TEXT,
        "group_instance_id": NULLABLE,
        "protocol_type": TEXT,
        "protocols": structs(name=TEXT, metadata=BYTES),
        "reason": NULLABLE,
    }
)
SYNC_REQUEST = st.fixed_dictionaries(
    {
        "group_id": TEXT,
        "generation_id": INT32,
        "member_id": TEXT,
        "group_instance_id": NULLABLE,
        "protocol_type": NULLABLE,
        "protocol_name": NULLABLE,
        "assignments": structs(member_id=TEXT, assignment=BYTES),
    }
)
Decode = Callable[[int, bytes], dict[str, Any]]
REQUESTS: dict[str, tuple[Api, Decode, tuple[str, str, str]]] = {
    "join": (JOIN, decode_join_group, ("protocols", "name", "metadata")),
    "sync": (SYNC, decode_sync_group, ("assignments", "member_id", "assignment")),
}


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, int, bytes]:
    """A kind of request, a version and its bytes."""
    kind = draw(st.sampled_from([*REQUESTS]))
    api = REQUESTS[kind][0]
    version = draw(st.integers(api.min_version, api.max_version))
    body = draw(JOIN_REQUEST if kind == "join" else SYNC_REQUEST)
    return kind, version, api.request.encode(version, body)


def by_schema(kind: str, version: int, data: bytes) -> dict[str, Any] | None:
    """What the schema codec reads, in our form; None when it is malformed."""
    api, _, (pairs, name, value) = REQUESTS[kind]
    try:
        body, _ = api.request.decode_prefix(version, data)
    except MalformedFrame:
        return None
    body[pairs] = [(one[name], one[value]) for one in body[pairs]]
    return body


def by_hand(kind: str, version: int, data: bytes) -> dict[str, Any] | None:
    try:
        return REQUESTS[kind][1](version, data)
    except MalformedFrame:
        return None


@given(requests())
def test_a_request_is_read_as_by_its_schema(request: tuple[str, int, bytes]) -> None:
    assert by_hand(*request) == by_schema(*request) is not None


@given(requests(), st.data())
def test_a_damaged_request_is_refused_or_read_alike(
    request: tuple[str, int, bytes], data: st.DataObject
) -> None:
    kind, version, good = request
    place = data.draw(st.integers(0, len(good) - 1))
    changed = bytes([data.draw(st.integers(0, 255))])
    for bad in (good[:place] + changed + good[place + 1 :], good[:place], good + changed):
        found, wanted = by_hand(kind, version, bad), by_schema(kind, version, bad)
        # Where they differ, it is that less is taken.
        assert found is None or found == wanted
    assert by_hand(kind, version, good[:place]) is None


def test_tagged_fields_are_passed_over() -> None:
    head = b"\x02g" + b"\0\0\0\1" * 2 + b"\x02m" + b"\0" + b"\x02t"
    protocols = b"\x02" + b"\x02p" + b"\x03ab" + b"\x01\x07\x02xy"
    tagged = head + protocols + b"\0" + b"\x01\x81\x01\x03abc"
    body = by_hand("join", 9, tagged)
    assert body is not None and body["protocols"] == [("p", b"ab")]
    assert body == by_schema("join", 9, tagged)
    with pytest.raises(MalformedFrame):
        decode_join_group(9, head + protocols + b"\0" + b"\x01\x00\x04abc")


@given(
    st.fixed_dictionaries(
        {
            "error_code": INT16,
            "generation_id": INT32,
            "protocol_type": NULLABLE,
            "protocol_name": TEXT,
            "leader": TEXT,
            "skip_assignment": st.booleans(),
            "member_id": TEXT,
            "members": structs(member_id=TEXT, group_instance_id=NULLABLE, metadata=BYTES),
        }
    )
)
def test_a_join_answer_is_written_as_by_its_schema(body: dict[str, Any]) -> None:
    for version in range(JOIN.min_version, JOIN.max_version + 1):
        written = encode_join_group(
            version,
            body["error_code"],
            generation=body["generation_id"],
            protocol_type=body["protocol_type"],
            protocol=body["protocol_name"],
            leader=body["leader"],
            skip_assignment=body["skip_assignment"],
            member=body["member_id"],
            members=[
                (one["member_id"], one["group_instance_id"], one["metadata"])
                for one in body["members"]
            ],
        )
        assert written == JOIN.response.encode(version, body | _skips(version, body))


def _skips(version: int, body: dict[str, Any]) -> dict[str, Any]:
    return {} if version >= 9 else {"skip_assignment": False}


@given(INT16, NULLABLE, NULLABLE, BYTES)
def test_a_sync_answer_is_written_as_by_its_schema(
    error: int, protocol_type: str | None, protocol: str | None, assignment: bytes
) -> None:
    names = {"protocol_type": protocol_type, "assignment": assignment}
    body = {"error_code": error, "protocol_name": protocol, **names}
    for version in range(SYNC.min_version, SYNC.max_version + 1):
        written = encode_sync_group(version, error, protocol=protocol, **names)
        assert written == SYNC.response.encode(version, body)


def test_an_error_names_no_protocol() -> None:
    body = {
        "error_code": ProtocolError.UNKNOWN_MEMBER_ID,
        "generation_id": -1,
        "protocol_name": None,
        "member_id": "m",
    }
    written = encode_join_group(
        9,
        25,
        generation=-1,
        protocol_type=None,
        protocol=None,
        leader="",
        skip_assignment=False,
        member="m",
        members=(),
    )
    assert written == JOIN.response.encode(9, body | {"leader": "", "members": []})
