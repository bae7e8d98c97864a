"""What kafka-python's decoders would read without end, or copy again and again."""

import struct
from typing import Any

import pytest
from kafka.protocol.schemas.fields.codecs.types import UnsignedVarInt32

from streaming.wire import apis, bounded_decoders
from streaming.wire.apis import KAFKA_PYTHON, ApiKey
from streaming.wire.errors import MalformedFrame
from streaming.wire.requests import decode_request, encode_request
from streaming.wire.schema_codec import MessageSchema


def varint(value):
    return UnsignedVarInt32.encode(value)


def header(key, version):
    return struct.pack(">hhih", key, version, 1, -1) + b"\0"


def deletion(name):
    """A request to delete one topic, in the first version with compact strings."""
    topics = varint(2) + varint(len(name) + 1) + name
    return header(ApiKey.DELETE_TOPICS, 4) + topics + struct.pack(">i", 1) + b"\0"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="length of a string"),
        pytest.param(b"\1\1", id="number of tagged fields"),
        pytest.param(b"\1\1\1", id="a tag"),
        pytest.param(b"\1\1\1\x63", id="length of a tagged field"),
    ],
)
def test_numbers_without_end(body):
    with pytest.raises(MalformedFrame, match="number of more than 5 bytes"):
        decode_request(header(ApiKey.API_VERSIONS, 3) + body + b"\xff" * 1_000 + b"\x01")


def test_an_array_whose_length_has_no_end():
    with pytest.raises(MalformedFrame, match="number of more than 5 bytes"):
        decode_request(header(ApiKey.DELETE_TOPICS, 4) + b"\xff" * 1_000 + b"\x01")


def test_numbers_of_five_bytes_are_read():
    request = deletion(b"t").replace(b"\2\2t", b"\x82\x80\x80\x80\0\x82\x80\x80\x80\0t")
    assert decode_request(request).body["topic_names"] == ["t"]


def test_strings_may_be_as_long_as_in_kafka():
    longest = b"t" * 0x7FFF
    assert decode_request(deletion(longest)).body["topic_names"] == [longest.decode()]
    with pytest.raises(MalformedFrame, match="string of more than 32767 bytes"):
        decode_request(deletion(longest + b"t"))


def test_structs_are_counted_over_all_arrays():
    schema = MessageSchema("FetchRequest", KAFKA_PYTHON, structs_max=10)

    def asked(topics, partitions):
        rows = {"topic_id": None, "partitions": [{"partition": 1}] * partitions}
        return schema.encode(17, {"topics": [rows] * topics})

    most = schema.decode(17, asked(3, 2))["topics"]  # 1 + 3 + 6
    assert [len(topic["partitions"]) for topic in most] == [2, 2, 2]
    with pytest.raises(MalformedFrame, match="more than 10 structs"):
        schema.decode(17, asked(2, 4))


def test_requests_that_others_send_are_bounded(monkeypatch):
    monkeypatch.setattr(apis, "ROWS_MAX", 10)
    topics = [{"name": str(number), "topic_id": None} for number in range(10)]
    asked = encode_request(ApiKey.DELETE_TOPICS, 6, 1, None, {"topics": topics[1:]})
    assert len(decode_request(asked).body["topics"]) == 9
    asked = encode_request(ApiKey.DELETE_TOPICS, 6, 1, None, {"topics": topics})
    with pytest.raises(MalformedFrame, match="more than 10 structs"):
        decode_request(asked)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        pytest.param("DeleteTopicsRequest", False, id="no tag is known"),
        pytest.param("FetchRequest", True, id="some tags are known"),
    ],
)
def test_only_tagged_fields_are_copied(monkeypatch, name, known):
    copied = []

    class Noted(bounded_decoders._WholeReads):
        def __init__(self, data):
            copied.append(len(data))
            super().__init__(data)

    monkeypatch.setattr(bounded_decoders, "_WholeReads", Noted)
    schema = MessageSchema(name, KAFKA_PYTHON)
    body: dict[str, Any] = {
        "topics": [{"name": str(number), "topic_id": None} for number in range(50)]
    }
    if known:
        partition = {"replica_directory_id": "00000000-0000-0000-0000-000000000001"}
        body = {"topics": [{"topic_id": None, "partitions": [partition] * 50}]}
    version = schema.max_version
    data = schema.encode(version, body)
    if not known:  # one unknown field in each element: 50 topics with an id of zeros
        data = data.replace(bytes(16) + b"\0", bytes(16) + b"\1\x63\0")
    found = schema.decode(version, data)
    assert len(found["topics"][0].get("partitions", found["topics"])) == 50
    assert len(copied) == 50
    assert sum(copied) < len(data)
