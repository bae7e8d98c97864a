"""The groups of a bucket; a group is opened when an event concerns it.

What is asked of all groups (who has a timer that is due, who has something to expire, who takes
part in a transaction) stands beside their bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from state.blocks import decode_block, encode_block
from state.errors import CorruptBlock
from state.groups.codec import decode_group, encode_members
from state.groups.group import Group, empty_since_ms
from state.groups.member import NEVER
from state.groups.states import GroupState

_LENGTH_BYTES = 4
_FIXED = (
    "partition",
    "deadline_ms",
    "latest_ms",
    "commit_ms",
    "expire_ms",
    "removable",
    "transactions",
)


@dataclass(slots=True)
class Entry:
    """One group: its bytes, or the group where it was opened.

    deadline_ms: of its first timer; latest_ms: by when the clock must tell of the first one that
    ends no session. commit_ms, expire_ms: the first time of a commit, and of an expiry that a
    commit brought with it; NEVER where there is none. removable: it is empty and has no offsets.
    transactions: it has offsets of open transactions. empty_ms: when a group that had members
    became empty; NEVER for others.
    """

    members: bytes
    offsets: bytes
    partition: int
    deadline_ms: int
    latest_ms: int
    commit_ms: int
    expire_ms: int
    removable: bool
    transactions: bool
    empty_ms: int = NEVER
    group: Group | None = None

    def may_expire(self, now_ms: int, retention_ms: int) -> bool:
        """Return whether to look for something that has expired."""
        if self.removable or self.expire_ms <= now_ms:
            return True
        since_ms = min(self.commit_ms, self.empty_ms)
        return self.commit_ms != NEVER and since_ms + retention_ms <= now_ms


class Bucket:
    """Groups by name, in the order they came, and by when the clock was told to ring."""

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
        self.entries[group.name] = Entry(
            b"", b"", group.partition, NEVER, NEVER, NEVER, NEVER, False, False, NEVER, group
        )

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
        """Return the group that must hear of its timer first; None without groups."""
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
        empty_ms = [one.empty_ms for one in entries]
        emptied = any(at_ms != NEVER for at_ms in empty_ms)
        block = encode_block(
            {
                "partition": np.array([one.partition for one in entries], dtype=np.int32),
                "deadline_ms": np.array([one.deadline_ms for one in entries], dtype=np.int64),
                "latest_ms": np.array([one.latest_ms for one in entries], dtype=np.int64),
                "commit_ms": np.array([one.commit_ms for one in entries], dtype=np.int64),
                "expire_ms": np.array([one.expire_ms for one in entries], dtype=np.int64),
                "removable": np.array([one.removable for one in entries], dtype=np.bool_),
                "transactions": np.array([one.transactions for one in entries], dtype=np.bool_),
                "members": np.array([len(one.members) for one in entries], dtype=np.uint32),
                "offsets": np.array([len(one.offsets) for one in entries], dtype=np.uint32),
                **({"empty_ms": np.array(empty_ms, dtype=np.int64)} if emptied else {}),
            },
            {"armed_ms": self.armed_ms, "groups": [*self.entries]},
        )
        return b"".join([len(block).to_bytes(_LENGTH_BYTES, "little"), block, *values])


def decode_bucket(data: bytes) -> Bucket:
    """Return a bucket; raises CorruptBlock when the bytes do not fit together."""
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    columns, extra = decode_block(data[_LENGTH_BYTES:start])
    lengths = [columns[name].tolist() for name in ("members", "offsets")]
    if start + sum(map(sum, lengths)) != len(data):
        raise CorruptBlock(f"a bucket of {len(data)} bytes does not end with its last group")
    fixed = [columns[name].tolist() for name in _FIXED]
    emptied = columns.get("empty_ms")
    fixed.append([NEVER] * len(fixed[0]) if emptied is None else emptied.tolist())
    entries: dict[str, Entry] = {}
    rows = zip(*fixed, strict=True)
    for name, values, length, rest in zip(extra["groups"], rows, *lengths, strict=True):
        middle, end = start + length, start + length + rest
        entries[name] = Entry(data[start:middle], data[middle:end], *values)
        start = end
    return Bucket(extra["armed_ms"], entries)
