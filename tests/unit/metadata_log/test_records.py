"""Records of a metadata log, one at a time."""

from __future__ import annotations

from uuid import UUID

import pytest

from streaming.metadata_log.records import RecordType, decode_record
from streaming.wire.errors import MalformedFrame
from tests.unit.metadata_log.metadata_records import T, encoded

QUOTA = {
    "entity": [{"entity_type": "user", "entity_name": None}],
    "key": "rate",
    "value": 1.5,
    "remove": False,
}


def test_a_record_says_its_kind_and_body() -> None:
    assert decode_record(encoded(RecordType.CLIENT_QUOTA, QUOTA)) == (
        RecordType.CLIENT_QUOTA,
        QUOTA,
    )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_directories_may_be_unknown(version: int) -> None:
    """A quorum that has migrated a partition does not know yet where its replicas are."""
    body = {"topic_id": T, "replicas": [1, 2], "directories": [UUID(int=0), UUID(int=9)]}
    names = ("isr", "removing_replicas", "adding_replicas")
    written = encoded(RecordType.PARTITION, {**body, **{name: [] for name in names}}, version)
    kind, read = decode_record(written)
    assert (kind, read["replicas"]) == (RecordType.PARTITION, [1, 2])


@pytest.mark.parametrize("kind", [RecordType.REGISTER_BROKER, RecordType.NO_OP])
def test_kinds_that_zookeeper_has_nothing_of_are_not_decoded(kind: RecordType) -> None:
    assert decode_record(bytes([1, kind, 9, 255])) == (kind, {})


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "a record of 0 bytes"),
        (b"\x01\x02", "a record of 2 bytes"),
        (b"\x02\x02\x00", "frame version 2"),
        (b"\x01\x1c\x00", "kind 28"),
        (b"\x01\x06\x00", "kind 6"),
        (b"\x01\x02\x01", "TopicRecord version 1, newest known 0"),
        (b"\x01\x02\x00\x05t", "TopicRecord version 0"),
    ],
)
def test_what_cannot_be_read_is_said(value: bytes, why: str) -> None:
    with pytest.raises(MalformedFrame, match=why):
        decode_record(value)
