"""The last question: is everything that was acked still there, and nothing twice?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaTimeoutError

from streaming.demo.producer import Acked

Place = tuple[int, int]
"""A partition and an offset in it."""

_POLL_MS = 500
_EMPTY_POLLS_MAX = 40
_ENDS_MS = 20_000
_ASKED_MAX = 3


class NotReadable(Exception):
    """A partition could not be read to its end in time."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """acked: how many records were promised; lost: those of them that are not where they were
    acked; duplicates: copies beyond the first of any record in the topic.
    """

    acked: int
    lost: list[Acked]
    duplicates: int

    def __str__(self) -> str:
        return f"acked {self.acked}, lost {len(self.lost)}, duplicates {self.duplicates}"


def judge(acked: Sequence[Acked], stored: Mapping[Place, bytes]) -> Verdict:
    """Compare what was acked with what is stored."""
    copies = Counter((partition, value) for (partition, _), value in stored.items())
    lost = [one for one in acked if not _is_there(one, stored, copies)]
    return Verdict(len(acked), lost, sum(count - 1 for count in copies.values()))


def _is_there(
    one: Acked, stored: Mapping[Place, bytes], copies: Mapping[tuple[int, bytes], int]
) -> bool:
    if one.offset < 0:
        return (one.partition, one.value) in copies
    return stored.get((one.partition, one.offset)) == one.value


def read_back(
    bootstrap_servers: Sequence[str], topic: str, partitions: Iterable[int]
) -> dict[Place, bytes]:
    """Read every partition from its first record to the end it has now.

    Raises NotReadable, KafkaError.
    """
    assigned = [TopicPartition(topic, number) for number in partitions]
    ends = end_offsets(bootstrap_servers, assigned)
    with _reader(bootstrap_servers) as client:
        client.assign(assigned)
        client.seek_to_beginning(*assigned)
        return _read_until(client, ends)


def end_offsets(bootstrap_servers: Sequence[str], assigned: Sequence[Any]) -> Mapping[Any, int]:
    """Return where partitions end; raises NotReadable, KafkaError.

    If it takes long another client asks: kafka-python (3.0.12) goes on to ask whoever led when it
    began, if leaders move meanwhile.
    """
    for _ in range(_ASKED_MAX):
        with _reader(bootstrap_servers) as client, suppress(KafkaTimeoutError):
            ends: Mapping[Any, int] = client.end_offsets(assigned, timeout_ms=_ENDS_MS)
            return ends
    raise NotReadable(f"brokers do not say where all of {assigned} end")


@contextmanager
def _reader(bootstrap_servers: Sequence[str]) -> Iterator[Any]:
    client: Any = KafkaConsumer(
        bootstrap_servers=list(bootstrap_servers),
        client_id="demo-verdict",
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    try:
        yield client
    finally:
        client.close(autocommit=False)


def _read_until(client: Any, ends: Mapping[Any, int]) -> dict[Place, bytes]:
    stored: dict[Place, bytes] = {}
    empty_polls = 0
    while True:
        behind = [part for part, end in ends.items() if end and client.position(part) < end]
        if not behind:
            return stored
        polled = client.poll(timeout_ms=_POLL_MS)
        empty_polls = 0 if polled else empty_polls + 1
        if empty_polls > _EMPTY_POLLS_MAX:
            raise NotReadable(f"nothing more comes from {behind}")
        for records in polled.values():
            stored |= {(record.partition, record.offset): record.value for record in records}
