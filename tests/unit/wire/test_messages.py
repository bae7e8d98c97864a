"""Headers, versions and errors of single requests and responses."""

from __future__ import annotations

import uuid

import pytest

from state.protocol_errors import ProtocolError
from streaming.wire.apis import (
    APIS,
    BROKER_APIS,
    GATEWAY_APIS,
    GROUP_APIS,
    PASSED_APIS,
    ApiKey,
)
from streaming.wire.errors import MalformedFrame, UnsupportedApi, UnsupportedVersion
from streaming.wire.requests import decode_request, encode_request, request_in_words
from streaming.wire.responses import decode_response, encode_response

API_VERSIONS = [
    (api.key, version)
    for api in APIS.values()
    for version in range(api.min_version, api.max_version + 1)
]
TOPIC_ID = uuid.UUID("c5583b2b-a2b2-4ef9-b1a6-e0fb467a94ff")
PLAIN_ALTER_PARTITION = {
    "broker_id": 1,
    "broker_epoch": 42,
    "topics": [
        {
            "topic_name": "t",
            "topic_id": TOPIC_ID,
            "partitions": [
                {
                    "partition_index": 3,
                    "leader_epoch": 5,
                    "new_isr": [1, 2],
                    "new_isr_with_epochs": [
                        {"broker_id": 1, "broker_epoch": 42},
                        {"broker_id": 2, "broker_epoch": -1},
                    ],
                    "leader_recovery_state": 1,
                    "partition_epoch": 9,
                }
            ],
        }
    ],
}


def test_no_version_is_beyond_kafka_3_9():
    assert {api.name: (api.min_version, api.max_version) for api in APIS.values()} == {
        "Produce": (3, 9),
        "Fetch": (4, 17),
        "ListOffsets": (1, 9),
        "Metadata": (0, 12),
        "LeaderAndIsr": (0, 7),
        "StopReplica": (0, 4),
        "UpdateMetadata": (0, 8),
        "ControlledShutdown": (0, 3),
        "OffsetCommit": (1, 9),
        "OffsetFetch": (1, 9),
        "FindCoordinator": (0, 6),
        "JoinGroup": (0, 9),
        "Heartbeat": (0, 4),
        "LeaveGroup": (0, 5),
        "SyncGroup": (0, 5),
        "DescribeGroups": (0, 5),
        "ListGroups": (0, 5),
        "SaslHandshake": (0, 1),
        "ApiVersions": (0, 4),
        "SaslAuthenticate": (0, 2),
        "CreateTopics": (0, 7),
        "DeleteTopics": (0, 6),
        "InitProducerId": (0, 5),
        "OffsetForLeaderEpoch": (2, 4),
        "AddPartitionsToTxn": (4, 5),
        "WriteTxnMarkers": (0, 1),
        "TxnOffsetCommit": (0, 4),
        "DescribeAcls": (1, 3),
        "CreateAcls": (1, 3),
        "DeleteAcls": (1, 3),
        "DescribeConfigs": (0, 4),
        "AlterConfigs": (0, 2),
        "DescribeLogDirs": (0, 4),
        "CreatePartitions": (0, 3),
        "CreateDelegationToken": (0, 3),
        "RenewDelegationToken": (0, 2),
        "ExpireDelegationToken": (0, 2),
        "DescribeDelegationToken": (0, 3),
        "DeleteGroups": (0, 2),
        "ElectLeaders": (0, 2),
        "IncrementalAlterConfigs": (0, 1),
        "AlterPartitionReassignments": (0, 0),
        "ListPartitionReassignments": (0, 0),
        "OffsetDelete": (0, 0),
        "DescribeClientQuotas": (0, 1),
        "AlterClientQuotas": (0, 1),
        "DescribeUserScramCredentials": (0, 0),
        "AlterUserScramCredentials": (0, 0),
        "AlterPartition": (0, 3),
        "UpdateFeatures": (0, 1),
        "DescribeCluster": (0, 1),
        "ListTransactions": (0, 1),
        "AllocateProducerIds": (0, 0),
    }
    askers = (GATEWAY_APIS, GROUP_APIS, PASSED_APIS, BROKER_APIS)
    assert set(APIS) == frozenset().union(*askers)
    assert len(APIS) == sum(map(len, askers))


@pytest.mark.parametrize(("key", "version"), API_VERSIONS)
def test_schemas_know_the_versions_and_their_key(key, version):
    for schema in (APIS[key].request, APIS[key].response):
        assert version <= schema.max_version


@pytest.mark.parametrize(
    ("key", "version", "header"),
    [
        pytest.param(7, 0, "0007 0000 00000009", id="controlled shutdown 0 has no client id"),
        pytest.param(7, 1, "0007 0001 00000009 0002 6d65", id="classic"),
        pytest.param(7, 3, "0007 0003 00000009 0002 6d65 00", id="flexible, client id classic"),
        pytest.param(18, 3, "0012 0003 00000009 0002 6d65 00", id="flexible ApiVersions"),
    ],
)
def test_request_headers(key, version, header):
    frame = encode_request(key, version, 9, "me", {})
    expected = bytes.fromhex(header)
    assert frame[: len(expected)] == expected
    decoded = decode_request(frame).header
    assert (decoded.api_key, decoded.api_version, decoded.correlation_id) == (key, version, 9)
    assert decoded.client_id == (None if (key, version) == (7, 0) else "me")


@pytest.mark.parametrize("client_id", [None, "", "rdkafka-ü"])
def test_client_ids_survive(client_id):
    frame = encode_request(ApiKey.METADATA, 12, 1, client_id, {})
    assert decode_request(frame).header.client_id == client_id


@pytest.mark.parametrize(
    ("key", "version", "frame"),
    [
        pytest.param(7, 2, "00000009 0000 00000000", id="classic"),
        pytest.param(7, 3, "00000009 00 0000 01 00", id="flexible"),
        pytest.param(18, 4, "00000009 0000 01 00000000 00", id="ApiVersions: header stays 0"),
    ],
)
def test_response_headers(key, version, frame):
    assert encode_response(key, version, 9, {}) == bytes.fromhex(frame)


def test_a_request_from_a_real_broker():
    """AlterPartition version 0 as a 2.8 broker lays it out (there called AlterIsr)."""
    frame = bytes.fromhex(
        "0038 0000 00000003 0001 31 00"  # key, version, correlation id, client id "1", tags
        "00000001 000000000000002a"  # broker id, broker epoch
        "02 0274"  # one topic, "t"
        "02 00000003 00000005 03 00000001 00000002 00000009 00"  # partition, epochs, isr
        "00 00"  # tags of topic and request
    )
    request = decode_request(frame)
    assert request.body["broker_epoch"] == 42
    (topic,) = request.body["topics"]
    assert topic["topic_name"] == "t"
    assert topic["topic_id"] is None
    (partition,) = topic["partitions"]
    assert partition == {
        "partition_index": 3,
        "leader_epoch": 5,
        "new_isr": [1, 2],
        "new_isr_with_epochs": [],
        "leader_recovery_state": 0,
        "partition_epoch": 9,
    }


@pytest.mark.parametrize("version", range(4))
def test_one_full_body_serves_every_version(version):
    frame = encode_request(ApiKey.ALTER_PARTITION, version, 1, "1", PLAIN_ALTER_PARTITION)
    (topic,) = decode_request(frame).body["topics"]
    (partition,) = topic["partitions"]
    assert topic["topic_id"] == (TOPIC_ID if version >= 2 else None)
    assert topic["topic_name"] == ("t" if version < 2 else "")
    assert partition["new_isr"] == ([1, 2] if version < 3 else [])
    assert len(partition["new_isr_with_epochs"]) == (2 if version >= 3 else 0)
    assert partition["leader_recovery_state"] == (1 if version >= 1 else 0)


def test_defaults_are_not_shared_between_bodies():
    frame = encode_request(ApiKey.FIND_COORDINATOR, 0, 1, None, {"key": "group"})
    decode_request(frame).body["coordinator_keys"].append("mutated")
    assert decode_request(frame).body["coordinator_keys"] == []


def test_an_api_that_is_not_served():
    with pytest.raises(UnsupportedApi, match="API key 26 is not served") as caught:
        decode_request(bytes.fromhex("001a 000c 00000007 ffff"))
    assert (caught.value.api_version, caught.value.correlation_id) == (12, 7)
    leader_and_isr = encode_request(ApiKey.LEADER_AND_ISR, 7, 1, None, {})
    with pytest.raises(UnsupportedApi):
        decode_request(leader_and_isr)
    assert decode_request(leader_and_isr, served=BROKER_APIS).header.api_key == 4


@pytest.mark.parametrize(
    ("key", "version"), [(18, 5), (3, 13), (60, 2), (22, 6), (19, -1), (3, -1)]
)
def test_a_version_that_is_not_served(key, version):
    frame = key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + bytes(4)
    with pytest.raises(UnsupportedVersion, match=f"version {version} is not supported") as caught:
        decode_request(frame)
    allowed = (APIS[key].min_version, APIS[key].max_version)
    assert (caught.value.min_version, caught.value.max_version) == allowed


@pytest.mark.parametrize(
    ("key", "version", "error"), [(26, 0, UnsupportedApi), (60, 2, UnsupportedVersion)]
)
def test_what_cannot_be_read_cannot_be_written_either(key, version, error):
    with pytest.raises(error):
        encode_request(key, version, 1, None, {})
    with pytest.raises(error):
        encode_response(key, version, 1, {})
    with pytest.raises(error):
        decode_response(key, version, bytes(20))


def test_an_api_versions_error_is_read_as_version_0():
    frame = bytes.fromhex("00000009 0023 00000001 0012 0000 0003")
    correlation_id, body = decode_response(ApiKey.API_VERSIONS, 4, frame)
    assert correlation_id == 9
    assert body["error_code"] == ProtocolError.UNSUPPORTED_VERSION
    assert body["api_keys"] == [{"api_key": 18, "min_version": 0, "max_version": 3}]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"broker": 1}, "unknown fields"),
        ({"broker_id": None}, "field broker_id must not be null"),
        ({"broker_id": 1 << 31}, "cannot encode AlterPartitionRequest version 3"),
        ({"topics": [{"partitions": [{"isr": []}]}]}, "unknown fields"),
    ],
)
def test_bodies_that_do_not_fit_the_schema(body, reason):
    with pytest.raises(ValueError, match=reason):
        encode_request(ApiKey.ALTER_PARTITION, 3, 1, None, body)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        pytest.param("", "request header cut off", id="empty"),
        pytest.param("0003 0001 000000", "request header cut off", id="short header"),
        pytest.param("0003 0001 00000001 0005 6d65", "RequestHeader", id="client id cut off"),
        pytest.param("0003 0001 00000001 0002 ffff 00000000", "RequestHeader", id="not UTF-8"),
        pytest.param("0003 0000 00000001 ffff ffffffff", "null for", id="null topics in version 0"),
        pytest.param("0003 0001 00000001 ffff 7fffffff", "MetadataRequest", id="endless array"),
        pytest.param("0003 000c 00000001 ffff 01 00 06 02 61 00 00 00", "Header", id="short tag"),
    ],
)
def test_malformed_requests(frame, reason):
    with pytest.raises(MalformedFrame, match=reason):
        decode_request(bytes.fromhex(frame))


def test_what_follows_a_request_is_passed_over():
    """As by brokers. So librdkafka 2 asks for the metadata of all topics (its issue 5049)."""
    header = bytes.fromhex("0003 000c 00000001 0007 72646b61666b61 00")
    found = decode_request(header + bytes.fromhex("00 000000 00 00 00"))
    assert found.body["topics"] is None


def test_unknown_tagged_fields_are_skipped():
    header = bytes.fromhex("0007 0003 00000001 ffff 01 63 02 abcd")
    body = bytes.fromhex("00000002 0000000000000005 01 0a 01 ff")
    assert decode_request(header + body).body == {"broker_id": 2, "broker_epoch": 5}


@pytest.mark.parametrize("tail", ["01 0a 02 ff", "01 0a 01", "02 0a 01 ff", "01", "80"])
def test_tagged_fields_that_end_too_early(tail):
    header = bytes.fromhex("0007 0003 00000001 ffff 00")
    body = bytes.fromhex("00000002 0000000000000005" + tail)
    with pytest.raises(MalformedFrame):
        decode_request(header + body)


def test_requests_are_told_of_without_what_is_in_them():
    secret = {"name": "u", "mechanism": 1, "iterations": 4096, "salt": b"s"}
    body = {"deletions": [], "upsertions": [secret | {"salted_password": b"secret"}]}
    frame = encode_request(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 1, "tool", body)
    words = f"AlterUserScramCredentials version 0 of client 'tool', {len(frame)} bytes"
    assert request_in_words(frame) == words
    assert request_in_words(frame[:9]).endswith(", 9 bytes")
    assert request_in_words(b"\x7f\x7f" + frame[2:]).startswith("API key 32639 is not served")
