"""What the last block of producer ids is told as, also when it cannot be read."""

from __future__ import annotations

from collections import Counter

import orjson
import pytest

from state.event_kinds import EventKind
from streaming.observers.producer_ids import NO_BLOCK, producer_ids_observed
from streaming.zk.types import ZNode
from streaming.zk.znodes import ProducerIdBlock, producer_id_block_bytes


def block(data: bytes) -> ZNode:
    return ZNode(data, 3, 1, 1, 0, 0)


@pytest.mark.parametrize(
    ("znode", "told"),
    [
        (None, NO_BLOCK),
        (block(b""), {"block_end": -1, "zk_version": 3}),
        (
            block(producer_id_block_bytes(ProducerIdBlock(1, 1000, 1999))),
            {"block_end": 1999, "zk_version": 3},
        ),
    ],
)
def test_a_block_is_told_with_its_version(znode, told):
    counters: Counter[str] = Counter()
    observed = producer_ids_observed(znode, counters)
    assert observed.kind == EventKind.PRODUCER_ID_BLOCK_OBSERVED
    assert (orjson.loads(observed.payload), counters) == (told, {})


def test_a_block_that_cannot_be_read_is_none_and_counted(caplog):
    counters: Counter[str] = Counter()
    told = [producer_ids_observed(block(b"?"), one) for one in (counters, None)]
    assert [orjson.loads(one.payload) for one in told] == [NO_BLOCK] * 2
    assert counters == {"broken_producer_id_blocks": 1}
    assert caplog.text.count("no producer ids can be allocated") == 2
