"""The bytes of a group slot: version 2 is written, 1 and 2 are read.

A header block, and the buckets one after the other.

Only buckets that an event concerned, and in them only the groups it concerned, are encoded anew.
docs/state-format.md is the specification.
"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from state.blocks import decode_block, encode_block
from state.errors import CorruptBlock
from state.groups.config import GroupConfig
from state.groups.slot import GroupSlot, Ownership
from state.groups.tables import CoordinatorPhase

GROUP_FORMAT_VERSION = 2
READABLE_VERSIONS = (1, 2)
_MAGIC = b"HG"
_HEADER_BYTES = 7


def is_group_slot(data: bytes) -> bool:
    """Return whether a state's bytes are a group slot's."""
    return data[:2] == _MAGIC


def encode_group_slot(slot: GroupSlot) -> bytes:
    """Return the slot's bytes, without empty buckets; equal slots give equal bytes."""
    buckets = dict(slot.stored)
    transactional = set(slot.transactional)
    for number, bucket in slot.opened.items():
        if bucket.entries or bucket.armed_ms is not None:
            buckets[number] = bucket.encode()
        if any(entry.transactions for entry in bucket.entries.values()):
            transactional.add(number)
        else:
            transactional.discard(number)
    numbers = sorted(buckets)
    header = encode_block(
        {
            "bucket": np.array(numbers, dtype=np.int32),
            "bytes": np.array([len(buckets[number]) for number in numbers], dtype=np.int64),
            "transactions": np.array([one in transactional for one in numbers], dtype=np.bool_),
        },
        {
            "config": asdict(slot.config),
            "partitions": [[one, *held] for one, held in sorted(slot.partitions.items())],
        },
    )
    lead = _MAGIC + bytes([GROUP_FORMAT_VERSION]) + len(header).to_bytes(4, "little")
    return b"".join([lead, header, *(buckets[number] for number in numbers)])


def decode_group_slot(data: bytes) -> GroupSlot:
    """Return the slot; raises CorruptBlock naming what does not fit, and a version not ours.

    Version 1 knew no group.leave.rebalance.delay.ms: it is 0.
    """
    if not is_group_slot(data) or data[2] not in READABLE_VERSIONS:
        raise CorruptBlock(
            f"group state starts with {data[:3]!r}, this program reads versions "
            f"{', '.join(map(str, READABLE_VERSIONS))} of {_MAGIC!r}"
        )
    at = _HEADER_BYTES + int.from_bytes(data[3:_HEADER_BYTES], "little")
    columns, extra = decode_block(data[_HEADER_BYTES:at])
    stored: dict[int, bytes] = {}
    for number, length in zip(columns["bucket"].tolist(), columns["bytes"].tolist(), strict=True):
        stored[number] = data[at : at + length]
        at += length
    if at != len(data):
        raise CorruptBlock(f"group state is {len(data)} bytes long, its header says {at}")
    partitions = {
        one: Ownership(epoch, CoordinatorPhase(phase)) for one, epoch, phase in extra["partitions"]
    }
    transactional = set(columns["bucket"][columns["transactions"]].tolist())
    return GroupSlot(GroupConfig(**extra["config"]), partitions, stored, transactional)
