"""The three wide controller RPCs against bytes written down field by field, and at their edges.

The golden files were checked with Kafka 3.9.2's own generated message classes: each section is read
without a rest and written back to the same bytes. They are facts about the protocol, so
--rewrite-golden leaves them alone.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import SecurityProtocol
from streaming.wire.partition_rpcs import (
    BrokerNode,
    encode_stop_replica,
    encode_update_metadata,
)
from streaming.wire.requests import decode_request, encode_request_header
from tests.unit.wire.support import (
    CONTROLLER,
    RPC_VERSIONS,
    VERSIONS,
    encode,
    end,
    golden_bytes,
    golden_rows,
)

FILES = {
    "LeaderAndIsr": "leader_and_isr.txt",
    "UpdateMetadata": "update_metadata.txt",
    "StopReplica": "stop_replica.txt",
}
KEYS = {
    "LeaderAndIsr": ApiKey.LEADER_AND_ISR,
    "UpdateMetadata": ApiKey.UPDATE_METADATA,
    "StopReplica": ApiKey.STOP_REPLICA,
}


def rows_for(rpc: str, version: int):
    one_flag = rpc == "StopReplica" and version < 3
    return golden_rows((True, True, True)) if one_flag else golden_rows()


@pytest.mark.parametrize(("rpc", "version"), RPC_VERSIONS)
def test_columns_give_the_golden_bytes(rpc, version):
    assert encode(rpc, version, rows_for(rpc, version)).body == golden_bytes(FILES[rpc])[version]


@pytest.mark.parametrize("rpc", FILES)
def test_golden_files_hold_every_version(rpc):
    assert sorted(golden_bytes(FILES[rpc])) == list(range(VERSIONS[rpc] + 1))


@pytest.mark.parametrize(("rpc", "version"), RPC_VERSIONS)
def test_only_the_broker_epoch_is_patched(rpc, version):
    encoded = encode(rpc, version, rows_for(rpc, version))
    header = encode_request_header(KEYS[rpc], version, 1, "helm")
    before = decode_request(header + encoded.body, served=KEYS.values()).body
    patched = b"".join(encoded.parts(0x7EDCBA9876543210))
    after = decode_request(header + patched, served=KEYS.values()).body
    if encoded.broker_epoch_position is None:
        assert patched == encoded.body
    else:
        assert before["broker_epoch"] == CONTROLLER["broker_epoch"]
        assert after == before | {"broker_epoch": 0x7EDCBA9876543210}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_stop_replica_with_one_flag_refuses_mixed_rows(version):
    with pytest.raises(ValueError, match="cannot mix"):
        encode_stop_replica(version, **CONTROLLER, rows=golden_rows((True, False, True)))


@pytest.mark.parametrize("rpc", FILES)
@pytest.mark.parametrize("beyond", [-1, 1])
def test_other_versions_are_refused(rpc, beyond):
    version = -1 if beyond < 0 else VERSIONS[rpc] + 1
    with pytest.raises(ValueError, match=rf"{rpc} version {version}, allowed 0 to"):
        encode(rpc, version, golden_rows())


@pytest.mark.parametrize(("rpc", "version"), RPC_VERSIONS)
def test_no_rows_is_an_empty_array(rpc, version):
    empty = golden_rows().select(np.zeros(3, bool))
    header = encode_request_header(KEYS[rpc], version, 1, None)
    body = decode_request(header + encode(rpc, version, empty).body, served=KEYS.values()).body
    arrays = ["topic_states", "ungrouped_partition_states", "ungrouped_partitions", "topics"]
    assert all(body.get(name, []) == [] for name in arrays)


@pytest.mark.parametrize(("rpc", "version"), RPC_VERSIONS)
def test_topics_without_rows_are_not_sent(rpc, version):
    rows = rows_for(rpc, version)
    padded = dataclasses.replace(
        rows,
        topic_names=["before", "t", "between", "payments", "after"],
        topic_ids=np.insert(rows.topic_ids, [0, 1, 2], 255, axis=0),
        topic_index=np.array([1, 1, 3], np.int32),
    )
    assert encode(rpc, version, padded) == encode(rpc, version, rows)


def test_select_takes_a_mask_or_indices():
    rows = golden_rows()
    by_mask = rows.select(np.array([True, False, True]))
    assert len(by_mask) == 2
    assert by_mask.partition.tolist() == [0, 4]
    assert by_mask.topic_names is rows.topic_names
    by_index = rows.select(np.array([0, 2]))
    assert encode("UpdateMetadata", 8, by_mask) == encode("UpdateMetadata", 8, by_index)


def test_long_arrays_take_a_longer_compact_length():
    wide = np.arange(200, dtype=np.int32)[None, :]
    rows = golden_rows().select(np.array([0]))
    rows = dataclasses.replace(rows, isr=wide, replicas=wide)
    header = encode_request_header(ApiKey.UPDATE_METADATA, 8, 1, None)
    body = decode_request(header + encode("UpdateMetadata", 8, rows).body, KEYS.values()).body
    (state,) = body["topic_states"][0]["partition_states"]
    assert state["isr"] == state["replicas"] == list(range(200))


def test_update_metadata_0_needs_a_plaintext_endpoint():
    secured = BrokerNode(3, None, (end("INTERNAL", "kafka-3", 9093, SecurityProtocol.SSL),))
    with pytest.raises(ValueError, match="broker 3 has no PLAINTEXT endpoint"):
        encode_update_metadata(0, **CONTROLLER, rows=golden_rows(), live_brokers=[secured])
