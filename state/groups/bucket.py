"""The groups of a bucket; a group is opened when an event concerns it.

What is asked of all groups (who has a timer that is due, who has something to expire, who takes
part in a transaction) stands beside their bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from state.blocks import Column, decode_block, encode_block
from state.errors import CorruptBlock
from state.groups.codec import decode_group, encode_members
from state.groups.group import Group, empty_since_ms
from state.groups.member import NEVER
from state.groups.states import GroupState

_LENGTH_BYTES = 4
_COLUMNS: Mapping[str, npt.DTypeLike] = {
    "partition": np.int32,
    "deadline_ms": np.int64,
    "latest_ms": np.int64,
    "commit_ms": np.int64,
    "expire_ms": np.int64,
    "removable": np.bool_,
    "transactions": np.bool_,
}
"""What a bucket always says of its groups: fields of Entry, in the order they are written."""
_EMPTY_MS = "empty_ms"
"""The field of Entry that is written where a group has a value."""


@dataclass(slots=True)
class Entry:
    """One group: its bytes, or the group where it was opened.

    deadline_ms: of its first timer; latest_ms: by when the clock must ring for the first one that
    ends no session. commit_ms, expire_ms: the first time of a commit, and of an expiry that a
    commit brought with it; NEVER where there is none. removable: it is empty and has no offsets.
    transactions: it has offsets of open transactions. empty_ms: when a group that had members
    became empty; NEVER for others.
    """

    partition: int
    members: bytes = b""
    offsets: bytes = b""
    deadline_ms: int = NEVER
    latest_ms: int = NEVER
    commit_ms: int = NEVER
    expire_ms: int = NEVER
    removable: bool = False
    transactions: bool = False
    empty_ms: int = NEVER
    group: Group | None = None

    def may_expire(self, now_ms: int, retention_ms: int) -> bool:
        """Return whether to look for something that has expired."""
        if self.removable or self.expire_ms <= now_ms:
            return True
        since_ms = min(self.commit_ms, self.empty_ms)
        return self.commit_ms != NEVER and since_ms + retention_ms <= now_ms


class Bucket:
    """Groups by name, in the order they came; armed_ms: when the timer rings at the latest."""

    __slots__ = ("armed_ms", "entries")

    def __init__(
        self, armed_ms: int | None = None, entries: dict[str, Entry] | None = None
    ) -> None:
        """Begin without groups by default."""
        self.armed_ms = armed_ms
        self.entries: dict[str, Entry] = {} if entries is None else entries

    def get(self, name: str) -> Group | None:
        """Return a group, opened; None when there is none of that name."""
        entry = self.entries.get(name)
        if entry is None:
            return None
        if entry.group is None:
            entry.group = decode_group(name, entry.partition, entry.members, entry.offsets)
        return entry.group

    def add(self, group: Group) -> None:
        """Take a new group in."""
        assert group.name not in self.entries, f"group {group.name} is there"
        self.entries[group.name] = Entry(group.partition, group=group)

    def remove(self, name: str) -> None:
        """Forget a group."""
        del self.entries[name]

    def settle(self, name: str) -> Entry:
        """Note what stands beside a group's bytes after it was changed; return its entry."""
        entry = self.entries[name]
        group = entry.group
        assert group is not None
        entry.deadline_ms, entry.latest_ms = group.deadlines_ms()
        if entry.latest_ms != NEVER:
            entry.latest_ms += group.slack_ms
        bare = not entry.offsets
        if group.store.is_open:
            rows = group.store.rows.values()
            own = [row.commit_ms for row in rows if row.expire_ms is None]
            entry.commit_ms = min(own, default=NEVER)
            entry.expire_ms = min(
                (row.expire_ms for row in rows if row.expire_ms is not None), default=NEVER
            )
            entry.transactions = bool(group.store.pending)
            bare = group.store.is_empty
        entry.removable = bare and group.state is GroupState.EMPTY
        since_ms = empty_since_ms(group)
        entry.empty_ms = NEVER if since_ms is None else since_ms
        return entry

    def due(self, now_ms: int) -> list[str]:
        """Return the groups that have a timer due, by name."""
        return sorted(name for name, one in self.entries.items() if one.deadline_ms <= now_ms)

    def first(self) -> str | None:
        """Return the group that the clock must ring for first; None without groups."""
        return min(self.entries, key=lambda name: self.entries[name].latest_ms, default=None)

    def of_partitions(self, partitions: Iterable[int]) -> list[str]:
        """Return the groups of partitions of `__consumer_offsets`, by name."""
        wanted = frozenset(partitions)
        return sorted(name for name, one in self.entries.items() if one.partition in wanted)

    def encode(self) -> bytes:
        """Return the bucket's bytes; only groups that were opened are encoded anew."""
        values: list[bytes] = []
        for entry in self.entries.values():
            if entry.group is not None:
                entry.members = encode_members(entry.group)
                entry.offsets = entry.group.store.encoded()
            values += (entry.members, entry.offsets)
        entries = self.entries.values()
        columns = {name: _column(name, entries, dtype) for name, dtype in _COLUMNS.items()}
        columns["members"] = np.array([len(one.members) for one in entries], dtype=np.uint32)
        columns["offsets"] = np.array([len(one.offsets) for one in entries], dtype=np.uint32)
        if any(one.empty_ms != NEVER for one in entries):
            columns[_EMPTY_MS] = _column(_EMPTY_MS, entries, np.int64)
        block = encode_block(columns, {"armed_ms": self.armed_ms, "groups": [*self.entries]})
        return b"".join([len(block).to_bytes(_LENGTH_BYTES, "little"), block, *values])


def decode_bucket(data: bytes) -> Bucket:
    """Return a bucket; raises CorruptBlock when the bytes do not fit together."""
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    columns, extra = decode_block(data[_LENGTH_BYTES:start])
    lengths = [columns[name].tolist() for name in ("members", "offsets")]
    if start + sum(map(sum, lengths)) != len(data):
        raise CorruptBlock(f"a bucket of {len(data)} bytes does not end with its last group")
    names = [*_COLUMNS, *([_EMPTY_MS] if _EMPTY_MS in columns else [])]
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    entries: dict[str, Entry] = {}
    for name, values, length, rest in zip(extra["groups"], rows, *lengths, strict=True):
        middle, end = start + length, start + length + rest
        fields: dict[str, Any] = dict(zip(names, values, strict=True))
        entries[name] = Entry(members=data[start:middle], offsets=data[middle:end], **fields)
        start = end
    return Bucket(extra["armed_ms"], entries)


def _column(name: str, entries: Iterable[Entry], dtype: npt.DTypeLike) -> Column:
    return np.array([*map(attrgetter(name), entries)], dtype=dtype)
