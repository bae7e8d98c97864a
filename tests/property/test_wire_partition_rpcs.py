"""Columns and the schema codec write the same bytes, for any rows and every version."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from streaming.wire.apis import APIS, ApiKey
from streaming.wire.partition_rpcs import PartitionRows
from tests.unit.wire.support import RPC_VERSIONS, as_body, encode, ids

KEYS = {
    "LeaderAndIsr": ApiKey.LEADER_AND_ISR,
    "UpdateMetadata": ApiKey.UPDATE_METADATA,
    "StopReplica": ApiKey.STOP_REPLICA,
}
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
PER_VERSION = settings(max_examples=settings().max_examples // 3)
BROKER_IDS = st.integers(0, (1 << 31) - 1)


@st.composite
def partition_rows(draw, one_delete_flag: bool):
    topics = draw(st.integers(0, 6))
    counts = draw(st.lists(st.integers(0, 5), min_size=topics, max_size=topics))
    n = sum(counts)
    name = st.text(st.characters(codec="utf-8"), max_size=8) | st.integers(1, 249).map("t".__mul__)
    wide, narrow = draw(st.integers(0, 5)), draw(st.integers(0, 3))

    def column(dtype, values=None):
        return draw(npst.arrays(dtype, n, elements=values))

    def broker_ids(width: int):
        return ids(*draw(st.lists(_ids(width), min_size=n, max_size=n)), width=width)

    flags = column(bool)
    return PartitionRows(
        topic_names=draw(st.lists(name, min_size=topics, max_size=topics)),
        topic_ids=draw(npst.arrays(np.uint8, (topics, 16))),
        topic_index=np.repeat(np.arange(topics, dtype=np.int32), counts),
        partition=column(np.int32, INT32),
        controller_epoch=column(np.int32, INT32),
        leader=column(np.int32, INT32),
        leader_epoch=column(np.int32, INT32),
        isr=broker_ids(wide),
        partition_epoch=column(np.int32, INT32),
        replicas=broker_ids(wide),
        offline_replicas=broker_ids(wide),
        adding=broker_ids(narrow),
        removing=broker_ids(narrow),
        is_new=column(bool),
        leader_recovery_state=column(np.int8),
        delete_partition=np.full(n, draw(st.booleans())) if one_delete_flag else flags,
    )


def _ids(width: int):
    return st.lists(BROKER_IDS, max_size=width)


@pytest.mark.parametrize(("rpc", "version"), RPC_VERSIONS)
@PER_VERSION
@given(data=st.data())
def test_columns_equal_the_schema_codec(rpc, version, data):
    rows = data.draw(partition_rows(one_delete_flag=rpc == "StopReplica" and version < 3))
    expected = APIS[KEYS[rpc]].request.encode(version, as_body(rows)[rpc])
    assert encode(rpc, version, rows).body == expected
