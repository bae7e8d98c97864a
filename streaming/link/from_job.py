"""What a job tells the front: the head of each message, and what its body is.

A job of another version may leave out what has a default here, and say more than is known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self, TypeVar

from state.decisions import Decision
from streaming.log.api import NewRecord

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FromJob:
    """A message's head; `kind` is its type on the wire."""

    kind: ClassVar[str]

    def head(self) -> dict[str, Any]:
        """Return what `encode_message` takes."""
        return {"type": self.kind, **{one.name: getattr(self, one.name) for one in fields(self)}}

    @classmethod
    def read(cls, head: Mapping[str, Any]) -> Self:
        """Return the message of a head; TypeError: it leaves out what has no default."""
        return cls(**{one.name: head[one.name] for one in fields(cls) if one.name in head})


@dataclass(frozen=True, slots=True)
class Hello(FromJob):
    """A job connects and replaces the one before; the front answers nothing."""

    kind = "hello"
    pid: int


@dataclass(frozen=True, slots=True)
class Append(FromJob):
    """Records to append, each as (kind, key, payload bytes); body: the payloads one after the
    other. The front answers with `appended`.
    """

    kind = "append"
    id: int
    records: Sequence[tuple[str, str, int]]

    @classmethod
    def of(cls, request_id: int, records: Sequence[NewRecord]) -> Self:
        """Return the message that asks for records."""
        return cls(request_id, [(one.kind, one.key, len(one.payload)) for one in records])


@dataclass(frozen=True, slots=True)
class ImageTold(FromJob):
    """All that is decided so far. body: ClusterImage.snapshot, which replaces the front's image, or
    nothing from a job that does not know the cluster before it is loaded, or loaded again.

    timers: {name: deadline_ms}, which replace the armed ones. pause_reason, paused_since_ms: as
    Pause has them. end_offset: up to where batches were complete, also while no front was there.
    query_folds: so does the query by now, beside the job's head start. without_term: the job begins
    behind the election, so everything is to be loaded again. brokers: what each has confirmed.
    queue_lengths: requests that each has not answered.
    """

    kind = "image"
    timers: Mapping[str, int] = field(default_factory=dict)
    paused: bool = False
    pause_reason: str | None = None
    paused_since_ms: int | None = None
    end_offset: int = 0
    query_folds: bool = False
    without_term: bool = False
    brokers: Mapping[str, Any] = field(default_factory=dict)
    queue_lengths: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class PersistedDecisions(FromJob):
    """Persisted decisions, each as (event offset, kind, body bytes); body: their bodies one after
    the other.
    """

    kind = "decisions"
    decisions: Sequence[tuple[int, str, int]]
    batch_id: int | None = None

    @classmethod
    def of(cls, batch_id: int | None, decisions: Sequence[Decision]) -> Self:
        """Return the message that tells decisions."""
        return cls([(one.offset, one.kind, len(one.body)) for one in decisions], batch_id)


@dataclass(frozen=True, slots=True)
class Replies(FromJob):
    """Bodies of reply decisions as JSON objects."""

    kind = "replies"
    replies: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class BatchCompleted(FromJob):
    """A batch is complete up to (not including) end_offset; one of the query has a batch_id, one of
    the job's head start has None.

    decisions, conflicts, rejected: how many there were, and how many writes ended so. fenced: a
    write of this batch, or of one before it, was refused by its epoch. first_event_ms,
    written_at_ms: when its first event was appended and when ZooKeeper had all of it. retain_from:
    the oldest event still needed. elections: {rule: partitions that it gave a leader}.
    queue_lengths: as in ImageTold.
    """

    kind = "batch"
    batch_id: int | None
    end_offset: int
    decisions: int = 0
    conflicts: int = 0
    rejected: int = 0
    fenced: bool = False
    first_event_ms: int | None = None
    written_at_ms: int = 0
    retain_from: int = 0
    duration_ms: float | None = None
    elections: Mapping[str, int] = field(default_factory=dict)
    queue_lengths: Mapping[str, int] | None = None

    def figures(self) -> dict[str, Any]:
        """Return what the outcome log and the status say of a batch."""
        apart = {"elections", "queue_lengths"}
        names = [one.name for one in fields(self) if one.name not in apart]
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class QueryFolded(FromJob):
    """The query has folded up to end_offset what was carried out before."""

    kind = "query"
    end_offset: int


@dataclass(frozen=True, slots=True)
class Reobserve(FromJob):
    """Topics to be observed again, because what was decided about them was not written;
    unwritable: those of them that ZooKeeper takes no write of.
    """

    kind = "reobserve"
    topics: Sequence[str]
    unwritable: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Delivered(FromJob):
    """brokers: what those have confirmed that confirmed something since the last time;
    queue_lengths: as in ImageTold.
    """

    kind = "delivery"
    brokers: Mapping[str, Any] = field(default_factory=dict)
    queue_lengths: Mapping[str, int] | None = None


def by_broker(values: Mapping[int, _T]) -> dict[str, _T]:
    """Return what there is of each broker as JSON has it, where keys are strings."""
    return {str(broker_id): value for broker_id, value in values.items()}
