"""The last block of producer ids, as the observers and the sinks tell the machines of it."""

from __future__ import annotations

import logging

from state.event_kinds import EventKind
from streaming.log.api import NewRecord
from streaming.log.events import event
from streaming.process.counters import Counters
from streaming.zk.types import ZNode
from streaming.zk.znodes import parse_producer_id_block

logger = logging.getLogger(__name__)

NO_BLOCK = {"block_end": -1, "zk_version": -1}
"""There is no /latest_producer_id_block, or one that cannot be read: the machine then creates it,
which comes to nothing until the one that is there is mended or gone. No other version would do: the
machine counts it on, and could come to that of the znode.
"""


def producer_ids_observed(znode: ZNode | None, counters: Counters | None = None) -> NewRecord:
    """Return the event of /latest_producer_id_block; one that cannot be read is logged, and counted
    where there are counters.
    """
    try:
        block = producer_id_block(znode)
    except ValueError as error:
        logger.error("no producer ids can be allocated: %s", error)
        if counters is not None:
            counters["broken_producer_id_blocks"] += 1
        block = NO_BLOCK
    return event(EventKind.PRODUCER_ID_BLOCK_OBSERVED, block)


def producer_id_block(znode: ZNode | None) -> dict[str, int]:
    """Return /latest_producer_id_block as an event's body; raises ValueError.

    block_end is -1 before the first block: the znode is missing, or empty as Kafka creates it.
    """
    if znode is None:
        return NO_BLOCK
    if not znode.data:
        return {**NO_BLOCK, "zk_version": znode.version}
    block = parse_producer_id_block(znode.data)
    return {"block_end": block.block_end, "zk_version": znode.version}
