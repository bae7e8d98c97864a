"""Puts together why a partition is as it is: event, elections, decisions, what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import orjson

from checkpoints.layout import CheckpointMismatch
from checkpoints.reconstruct import Reconstruction, concerns, reconstruct
from checkpoints.snapshot import Snapshot
from checkpoints.what_if import rewritten, under_settings
from state.events import Event
from state.routing import topic_scope
from streaming.errors import ConfigurationError, HelmstreamError
from streaming.explain.changes import Change, changes_before, recipients_of
from streaming.explain.groups import GroupChange, group_changes_before
from streaming.explain.outcomes import Outcome, outcome_of
from streaming.log.api import LogError, LogRecord, LogUnavailable
from streaming.log.decision_writer import record_id
from streaming.log.embedded import EmbeddedLogReader
from streaming.log.location import LogLocation
from streaming.log.recorded import RecordedLog, first_at, first_where, open_log
from streaming.paths import DataDir
from streaming.replay.plan import made_with_of


class NothingDecided(HelmstreamError):
    """The retained decision log says nothing about what was asked for."""


class AnotherEventLog(HelmstreamError):
    """The event log that was given is not the one that was decided about."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Explanation:
    """One change of a partition, with all that is known about it.

    event: None when the event log has let go of it, or is not here (has_event_log).
    reconstruction: how it was decided; None when neither the log reaches back to an election of the
    controller nor machines of before were given.
    recipients: the brokers that it had to be sent to, ascending; none when it was not written.
    partition_named: whether any retained decision names the partition; if none does, this one is
    about the whole topic, which may have no such partition.
    """

    topic: str
    partition: int
    change: Change
    event: LogRecord | None
    reconstruction: Reconstruction | None
    recipients: tuple[int, ...]
    outcome: Outcome
    has_event_log: bool = True
    partition_named: bool = True

    @property
    def lost(self) -> str | None:
        """Why the change was not written; None when it was, is not yet, or needed no write."""
        return self.outcome.lost(self.change.offset, self.topic, self.partition)

    def refused_by(self, broker: int) -> int | None:
        """Return the error code with which a broker refuses its replica; None if it does not."""
        return self.outcome.refused.get(broker, {}).get((self.topic, self.partition))

    @property
    def recipients_complete(self) -> bool:
        """Whether nobody else was sent it: who was registered, only a reconstruction says."""
        row = self.change.row
        everybody = row is not None and "update_metadata" in row["actions"]
        return self.reconstruction is not None or self.lost is not None or not everybody


@dataclass(frozen=True, slots=True)
class GroupExplanation:
    """One change of a group: the event, None when the event log has let go of it, and what came of
    it.
    """

    group: str
    change: GroupChange
    event: LogRecord | None
    outcome: Outcome


class Explainer:
    """Explains partitions out of the logs of one data folder; somebody else may be writing them."""

    def __init__(self, folders: DataDir, retained: Callable[[int], Snapshot] | None = None) -> None:
        """Open the logs; raises LogError when there are no decisions.

        retained: gives the machines as of before an event offset, asked where the event log does
        not reach back to an election.
        """
        self._retained = retained
        self._what_if = (made_with_of(folders.root) or {}).get("set", {})
        self._read: tuple[str, int, list[Event]] = ("", 0, [])
        self._named: dict[tuple[str, int], bool] = {}  # asked once: it may be a look at all of it
        self._decisions = EmbeddedLogReader(folders.decisions)
        self._events = _opened(folders.event_log)
        self._outcomes = _opened(folders.outcomes)

    def __enter__(self) -> Explainer:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in (self._decisions, self._events, self._outcomes):
            if reader is not None:
                reader.close()

    def explain(
        self, topic: str, partition: int, *, at: int | None = None, time_ms: int | None = None
    ) -> Explanation:
        """Explain the last change, or the last one up to an event offset or a time.

        Raises NothingDecided.
        """
        changes = self._changes(topic, partition, at, time_ms)
        change = next((one for one in changes if one.matters), None)
        if change is None:
            raise _nothing(topic, partition, _until(at, time_ms))
        return self._explained(topic, partition, change)

    def story(
        self,
        topic: str,
        partition: int,
        count: int,
        *,
        at: int | None = None,
        time_ms: int | None = None,
    ) -> list[Explanation]:
        """Return the last changes, the latest last; raises NothingDecided when there is none."""
        matter = (one for one in self._changes(topic, partition, at, time_ms) if one.matters)
        found = [self._explained(topic, partition, one) for one in islice(matter, count)]
        if not found:
            raise _nothing(topic, partition, _until(at, time_ms))
        return found[::-1]

    def group_story(
        self, group: str, count: int, *, at: int | None = None, time_ms: int | None = None
    ) -> list[GroupExplanation]:
        """Return the last changes of a group, the latest last; raises NothingDecided."""
        changes = group_changes_before(self._decisions, self._end(at, time_ms), group)
        found = [
            GroupExplanation(
                group,
                change,
                self._event_of(change.offset, change.time_ms),
                outcome_of(self._outcomes, change.offset, change.time_ms, ()),
            )
            for change in islice(changes, count)
        ]
        if not found:
            raise NothingDecided(
                f"no change of group {group}, other than commits, is in the retained decision log"
                f"{_until(at, time_ms)}; if it is a topic, name a partition: {group}-0"
            )
        return found[::-1]

    def _changes(
        self, topic: str, partition: int, at: int | None, time_ms: int | None
    ) -> Iterator[Change]:
        end = self._end(at, time_ms)
        return changes_before(self._decisions, end, topic, partition, self._asked)

    def _asked(self, decision: LogRecord) -> set[int]:
        """Return the partitions that a decision's event names, none where the event is gone."""
        event = self._event_of(record_id(decision).event_offset, decision.time_ms)
        named = [] if event is None else orjson.loads(event.payload).get("partitions", [])
        return {one["partition"] if isinstance(one, dict) else one for one in named}

    def _end(self, at: int | None, time_ms: int | None) -> int:
        end = self._decisions.end_offset()
        if at is not None:
            self._check_is_past(at)
            end = first_where(self._decisions, lambda record: record_id(record).event_offset > at)
        if time_ms is not None:
            end = min(end, first_at(self._decisions, time_ms + 1))
        return end

    def _check_is_past(self, at: int) -> None:
        """Raise ConfigurationError when neither log has come to an event offset."""
        end = self._decisions.end_offset()
        last = -1 if self._events is None else self._events.end_offset() - 1
        if end > self._decisions.start_offset():
            decided = record_id(next(iter(self._decisions.read(end - 1, end))))
            last = max(last, decided.event_offset)
        if at > last:
            raise ConfigurationError(
                f"--at {at}: allowed are offsets of events, up to {last}, and times in ISO 8601"
            )

    def _event_of(self, offset: int, time_ms: int) -> LogRecord | None:
        """Return the event at an offset that was decided about, None where it is gone.

        time_ms: its time, which decisions carry. Raises AnotherEventLog when it has another.
        """
        events = self._events
        if events is None or not events.start_offset() <= offset < events.end_offset():
            return None
        event = next(iter(events.read(offset, offset + 1)))
        if event.time_ms != time_ms:
            raise AnotherEventLog(
                f"the event log is another one than these decisions are from: its event {offset}"
                f" is of {event.time_ms} ms, the one that was decided about of {time_ms} ms;"
                " check event.log.url"
            )
        return event

    def _explained(self, topic: str, partition: int, change: Change) -> Explanation:
        event, reconstruction = self._reconstruct(topic, change)
        registered = None if reconstruction is None else reconstruction.registered
        recipients = recipients_of(change, registered)
        outcome = outcome_of(self._outcomes, change.offset, change.time_ms, recipients)
        if outcome.lost(change.offset, topic, partition) is not None:
            recipients = ()
        return Explanation(
            topic,
            partition,
            change,
            event,
            reconstruction,
            recipients,
            outcome,
            has_event_log=self._events is not None,
            partition_named=change.names_partition or self._is_named(topic, partition),
        )

    def _is_named(self, topic: str, partition: int) -> bool:
        subject = topic, partition
        if subject not in self._named:
            end = self._decisions.end_offset()
            changes = changes_before(self._decisions, end, topic, partition, self._asked)
            self._named[subject] = any(one.names_partition for one in changes)
        return self._named[subject]

    def _reconstruct(
        self, topic: str, change: Change
    ) -> tuple[LogRecord | None, Reconstruction | None]:
        events, offset = self._events, change.offset
        event = self._event_of(offset, change.time_ms)
        if events is None or event is None:
            return None, None
        relevant = self._relevant(events, topic, offset + 1)
        reconstruction = reconstruct(relevant, topic)
        if reconstruction is None and self._retained is not None:
            snapshot = self._retained(offset)
            if snapshot.offset < (start := events.start_offset()):
                raise CheckpointMismatch(
                    f"the machines are as of event {snapshot.offset}, and the event log begins at"
                    f" {start}: what happened between the two is not known"
                )
            reconstruction = self._reconstruct_from(snapshot, relevant, topic)
        return event, reconstruction

    def _relevant(self, events: RecordedLog, topic: str, end: int) -> list[Event]:
        """Return the events before an offset that concern a topic. A story, which asks for its
        latest change first, has the log read once.
        """
        of_topic, until, found = self._read
        if of_topic != topic or until < end:
            records = events.read(events.start_offset(), end)
            found = [self._as_folded(one) for one in records if concerns(one.kind, one.key, topic)]
            self._read = (topic, end, found)
        return [one for one in found if one.offset < end]

    def _as_folded(self, record: LogRecord) -> Event:
        """Return an event as it was decided about: under the settings of a what-if, where the
        folder is a replay's.
        """
        payload = rewritten(record.kind, record.payload, self._what_if)
        return replace(record, payload=payload).as_event()

    def _reconstruct_from(
        self, snapshot: Snapshot, events: Sequence[Event], topic: str
    ) -> Reconstruction | None:
        slot = topic_scope(topic) % snapshot.layout.slots
        held = {slot: snapshot.states[slot]} if slot in snapshot.states else {}
        before = under_settings(held, self._what_if).get(slot)
        return reconstruct([one for one in events if one.offset >= snapshot.offset], topic, before)


def _until(at: int | None, time_ms: int | None) -> str:
    return "" if at is None and time_ms is None else " up to then"


def _nothing(topic: str, partition: int, until: str) -> NothingDecided:
    return NothingDecided(
        f"no change of {topic}-{partition} is in the retained decision log{until}: another"
        " controller may have changed it; if a consumer group has that name: --group"
    )


def _opened(where: LogLocation) -> RecordedLog | None:
    try:
        return open_log(where)
    except LogUnavailable:
        raise
    except LogError:
        return None
