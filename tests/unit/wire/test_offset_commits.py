"""OffsetCommit without the schema codec says what the schema codec says, also of damaged bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.wire import offset_commits
from streaming.wire.apis import APIS, ApiKey
from streaming.wire.errors import MalformedFrame
from streaming.wire.offset_commits import decode_offset_commit, encode_commit_errors

COMMIT, TXN_COMMIT = APIS[ApiKey.OFFSET_COMMIT], APIS[ApiKey.TXN_OFFSET_COMMIT]
VERSIONS = range(COMMIT.min_version, COMMIT.max_version + 1)
TEXT = st.text(max_size=150)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
PARTITION = st.fixed_dictionaries(
    {
        "partition_index": INT32,
        "committed_offset": INT64,
        "committed_leader_epoch": INT32,
        "commit_timestamp": st.just(-1) | INT64,
        "committed_metadata": st.none() | TEXT,
    }
)
ROW = ("partition_index", "committed_offset", "committed_leader_epoch")
TOPIC = st.fixed_dictionaries({"name": TEXT, "partitions": st.lists(PARTITION, max_size=3)})
REQUEST = st.fixed_dictionaries(
    {
        "group_id": TEXT,
        "generation_id_or_member_epoch": INT32,
        "member_id": TEXT,
        "group_instance_id": st.none() | TEXT,
        "retention_time_ms": INT64,
        "topics": st.lists(TOPIC, max_size=3),
    }
)


def by_schema(version: int, data: bytes) -> dict[str, Any] | None:
    """What the schema codec reads, in our form; None when it is malformed."""
    try:
        body, _ = COMMIT.request.decode_prefix(version, data)
    except MalformedFrame:
        return None
    topics = body["topics"]
    body["topics"] = [(topic["name"], len(topic["partitions"])) for topic in topics]
    body["offsets"] = [
        [topic["name"], *(one[name] for name in ROW), one["committed_metadata"] or ""]
        + [one["commit_timestamp"]] * (one["commit_timestamp"] != -1)
        for topic in topics
        for one in topic["partitions"]
    ]
    return body


def by_hand(version: int, data: bytes) -> dict[str, Any] | None:
    try:
        body = decode_offset_commit(version, data)
    except MalformedFrame:
        return None
    places = body.pop("places")
    read = [int.from_bytes(data[at : at + 8], signed=True) for at in places]
    assert read == [row[2] for row in body["offsets"]]
    return body


@given(st.sampled_from(VERSIONS), REQUEST)
def test_a_request_is_read_as_by_its_schema(version: int, body: dict[str, Any]) -> None:
    data = COMMIT.request.encode(version, body)
    assert by_hand(version, data) == by_schema(version, data) is not None


@given(st.sampled_from(VERSIONS), REQUEST, st.data())
def test_a_damaged_request_is_refused_or_read_alike(
    version: int, body: dict[str, Any], data: st.DataObject
) -> None:
    good = COMMIT.request.encode(version, body)
    place = data.draw(st.integers(0, len(good) - 1))
    changed = bytes([data.draw(st.integers(0, 255))])
    for bad in (good[:place] + changed + good[place + 1 :], good[:place], good + changed):
        found, wanted = by_hand(version, bad), by_schema(version, bad)
        # Where they differ, it is that less is taken.
        assert found is None or found == wanted
    assert by_hand(version, good[:place]) is None


def test_tagged_fields_are_passed_over() -> None:
    head = b"\x02g" + b"\0\0\0\1" + b"\x02m" + b"\0"
    partition = b"\0\0\0\3" + bytes(8) + b"\0\0\0\5" + b"\x01" + b"\x01\x07\x02ab"
    topic = b"\x02t" + b"\x02" + partition + b"\x02\x00\x01x\x01\x00"
    body = by_hand(9, head + b"\x02" + topic + b"\x01\x81\x01\x03abc")
    assert body == by_schema(9, head + b"\x02" + topic + b"\x01\x81\x01\x03abc")
    with pytest.raises(MalformedFrame):
        decode_offset_commit(9, head + b"\x02" + topic + b"\x01\x00\x04abc")


ERRORS = st.lists(
    st.tuples(TEXT, st.lists(st.tuples(INT32, st.integers(-(2**15), 2**15 - 1)), max_size=3)),
    max_size=3,
)


@given(ERRORS)
def test_answers_are_written_as_by_their_schemas(topics: list[tuple[str, Any]]) -> None:
    body = {
        "topics": [
            {
                "name": name,
                "partitions": [
                    {"partition_index": number, "error_code": error} for number, error in rows
                ],
            }
            for name, rows in topics
        ]
    }
    for api, throttle_since in ((COMMIT, 3), (TXN_COMMIT, 0)):
        for version in range(api.min_version, api.max_version + 1):
            assert api.response.encode(version, body) == encode_commit_errors(
                topics,
                throttle=version >= throttle_since,
                flexible=api.response.is_flexible(version),
            )


def test_more_partitions_than_anybody_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_commits, "ROWS_MAX", 10)
    partition = {"partition_index": 1, "committed_offset": 1, "committed_metadata": ""}

    def asked(topics: int) -> bytes:
        rows = [{"name": str(number), "partitions": [partition] * 5} for number in range(topics)]
        body = {"group_id": "g", "generation_id_or_member_epoch": 1, "member_id": "m"}
        return COMMIT.request.encode(9, body | {"topics": rows})

    assert len(decode_offset_commit(9, asked(2))["offsets"]) == 10
    with pytest.raises(MalformedFrame, match="more than 10 partitions"):
        decode_offset_commit(9, asked(3))
