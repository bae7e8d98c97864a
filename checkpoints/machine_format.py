"""The bytes of a machine's state: version 6 is written, 1 to 6 are read.

A slot is one column block; everything that is not a column (authority and configuration, brokers,
topics) is in its header. The cluster machine is a block without rows. docs/state-format.md is the
specification.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import numpy as np

from checkpoints.group_format import decode_group_slot, encode_group_slot, is_group_slot
from state.blocks import decode_block, encode_block
from state.cluster.authority import Authority, Phase
from state.cluster.brokers import Brokers
from state.cluster.cluster import Cluster
from state.cluster.config import ClusterConfig
from state.errors import CorruptBlock
from state.groups.slot import GroupSlot
from state.partitions.slot import Slot
from state.partitions.table import (
    COLUMN_NAMES,
    Columns,
    Deleted,
    Deletion,
    PartitionTable,
    Topic,
)
from state.payloads.brokers import BrokerRegistration
from state.step import Machine
from state.topic_ids import topic_id_from_text, topic_id_to_text

FORMAT_VERSION = 6
READABLE_VERSIONS = (1, 2, 3, 4, 5, 6)
_CONFIG_FIELDS = frozenset(field.name for field in fields(ClusterConfig))


def encode_machine(machine: Machine) -> bytes:
    """Return the machine's bytes; equal machines give equal bytes."""
    if isinstance(machine, GroupSlot):
        return encode_group_slot(machine)
    common = {
        "format": FORMAT_VERSION,
        "authority": asdict(machine.authority) | asdict(machine.config),
        "brokers": [
            [broker.id, broker.epoch, broker.rack, list(broker.endpoints)]
            for _, broker in sorted(machine.brokers.by_id.items())
        ],
        "shutting_down": sorted(machine.brokers.shutting_down),
        "shutdown_allowed": sorted(machine.brokers.shutdown_allowed),
    }
    if isinstance(machine, Cluster):
        extra = {
            **common,
            "machine": "cluster",
            "endpoints": list(machine.endpoints),
            "producer_id_end": machine.producer_id_end,
            "producer_id_version": machine.producer_id_version,
            "timers": dict(sorted(machine.timers.items())),
        }
        return encode_block({"none": np.empty(0, dtype=np.int32)}, extra)
    topics = [
        [one.name, topic_id_to_text(one.topic_id), one.unclean, one.zk_version, one.min_insync]
        for one in machine.table.topics
    ]
    deletions = [
        [name, deletion.started, deletion.halted]
        for name, deletion in sorted(machine.table.deletions.items())
    ]
    rows = machine.table.rows
    return encode_block(
        {name: getattr(rows, name) for name in COLUMN_NAMES},
        {**common, "machine": "slot", "topics": topics, "deletions": deletions}
        | _rare(machine.table),
    )


def _rare(table: PartitionTable) -> dict[str, Any]:
    """Return the header fields that are there only where they say something."""
    deleted = sorted((one.offset, name) for name, one in table.deleted.items())
    rare = {
        "deleted": [
            [name, topic_id_to_text(table.deleted[name].topic_id), offset]
            for offset, name in deleted
        ],
        "unseen": [one.name for one in table.topics if not one.seen],
        "awaited": sorted(table.awaited),
        "end_rejected": [one.name for one in table.topics if one.end_rejected],
    }
    return {name: found for name, found in rare.items() if found}


def decode_machine(data: bytes) -> Machine:
    """Return the machine; raises CorruptBlock naming the format version when it cannot be read, and
    what is missing or of another type.

    Version 1 knew no pause, no shutdown check and no pace of a rebalance: they have their defaults.
    Version 2 did not say when topics were deleted: they have been from the log's beginning on.
    Version 3 knew no unclean recovery: it is off. Version 4 knew no brokers that lead only where
    nobody else can: there are none. In version 5 no broker waited for its replicas.
    """
    if is_group_slot(data):
        return decode_group_slot(data)
    columns, extra = decode_block(data)
    if extra.get("format") not in READABLE_VERSIONS:
        raise CorruptBlock(
            f"machine state has format version {extra.get('format')!r}, "
            f"this program reads {', '.join(map(str, READABLE_VERSIONS))}"
        )
    try:
        return _machine(columns, extra)
    except KeyError as error:
        raise CorruptBlock(f"machine state has no field {error.args[0]!r}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise CorruptBlock(f"broken machine state: {error}") from None


def _machine(columns: dict[str, Any], extra: dict[str, Any]) -> Machine:
    authority, config = _authority_and_config(extra["authority"])
    brokers = _brokers(extra)
    if extra["machine"] == "cluster":
        return Cluster(
            authority,
            config,
            brokers,
            tuple(extra["endpoints"]),
            extra["producer_id_end"],
            extra["producer_id_version"],
            dict(extra["timers"]),
        )
    return Slot(authority, config, brokers, _table(columns, extra))


def _authority_and_config(stored: dict[str, Any]) -> tuple[Authority, ClusterConfig]:
    config = {name: value for name, value in stored.items() if name in _CONFIG_FIELDS}
    claim = {name: value for name, value in stored.items() if name not in _CONFIG_FIELDS}
    claim["phase"] = Phase(claim["phase"])
    claim["rebalancing"] = tuple(claim.get("rebalancing", ()))
    claim["behind_since"] = tuple(tuple(one) for one in claim.get("behind_since", ()))
    config["deprioritized"] = tuple(config.get("deprioritized", ()))
    return Authority(**claim), ClusterConfig(**config)


def _brokers(extra: dict[str, Any]) -> Brokers:
    return Brokers(
        (
            BrokerRegistration(id_, epoch, rack, tuple(ends))
            for id_, epoch, rack, ends in extra["brokers"]
        ),
        extra["shutting_down"],
        extra.get("shutdown_allowed", ()),
    )


def _table(columns: dict[str, Any], extra: dict[str, Any]) -> PartitionTable:
    topics = [
        Topic(name, topic_id_from_text(topic_id), unclean, zk_version, *min_insync)
        for name, topic_id, unclean, zk_version, *min_insync in extra["topics"]
    ]
    unseen = frozenset(extra.get("unseen", ()))
    rejected = frozenset(extra.get("end_rejected", ()))
    for topic in topics:
        topic.seen = topic.name not in unseen
        topic.end_rejected = topic.name in rejected
    return PartitionTable(
        topics,
        Columns(**{name: columns[name].copy() for name in COLUMN_NAMES}),
        {name: Deletion(started, halted) for name, started, halted in extra["deletions"]},
        {
            name: Deleted(topic_id_from_text(topic_id), *(offset or [0]))
            for name, topic_id, *offset in extra.get("deleted", ())
        },
        extra.get("awaited", ()),
    )
