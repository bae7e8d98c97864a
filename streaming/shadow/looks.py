"""What one look at a live cluster brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from state.topic_partition import TopicPartition
from streaming.log.api import NewRecord
from streaming.shadow.leadership import Assignment, Leadership


@dataclass(frozen=True, slots=True)
class SeenTopic:
    """A topic's znode."""

    topic_id: str | None
    assignment: Assignment


@dataclass(frozen=True, slots=True)
class Load:
    """A controller was elected and everything was read again.

    held: the states our machine was given; states that the new controller had written by then are
    among the look's results instead. first: it is our first look, and the controller is not new.
    """

    epoch: int
    held: Mapping[TopicPartition, Leadership | None]
    first: bool


@dataclass(slots=True)
class Look:
    """Results were read before inputs, so that no result is older than its input.

    inputs: events in order. states, topics: what changed; None: it is gone. load: set when
    everything that was known is out of date. time_ms, over_ms: steady clock when it began and
    ended; what was written before it began is in it or in an earlier one.
    """

    time_ms: int
    inputs: list[NewRecord] = field(default_factory=list)
    states: dict[TopicPartition, Leadership | None] = field(default_factory=dict)
    topics: dict[str, SeenTopic | None] = field(default_factory=dict)
    failed_log_dirs: set[int] = field(default_factory=set)
    load: Load | None = None
    over_ms: int = 0

    def __post_init__(self) -> None:
        """Take it as having taken no time unless that is given."""
        self.over_ms = self.over_ms or self.time_ms

    def __bool__(self) -> bool:
        """Return whether it brings anything."""
        return bool(self.inputs or self.states or self.topics or self.load)
