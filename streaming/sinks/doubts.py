"""What the machines believe and was never written: partitions, topics, producer ids.

A write that meets other content, or is rejected, is lost, and an event tells the machine what the
znode holds. What the machine decides before it folds that event rests on the lost write: it may be
neither written (the version it expects could be that of somebody else's write by now) nor told to
anybody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import orjson

from state.decisions import DecisionKind
from state.event_kinds import EventKind
from state.payloads.partitions import StateCause
from streaming.image.cluster_image import ClusterImage
from streaming.log.api import LogRecord, NewRecord
from streaming.sinks.batch import PARTITION_CHANGES, TOPIC_WRITES, DecidedBatch, SinkDecision
from streaming.sinks.batch_events import (
    lost_partition_events,
    refused_since,
    rejected_since,
    taken_back,
)
from streaming.sinks.independent_stops import independent_stops, stored_states, written_assignments

Subject = tuple[str, int | None]
"""A topic and a partition; None: all partitions of the topic."""

_RangesById = dict[str | None, list[tuple[int, int]]]
_PRODUCER_IDS: Subject = ("", None)

_UNKNOWN = 1 << 62


class Doubts:
    """For each subject, the ranges of events [from, until) whose decisions about it do not count; a
    range begins behind the end of the one before. Topics of one name that have ids are apart: what
    was not written of one says nothing about the next.
    """

    def __init__(self, unfolded: Iterable[LogRecord] = ()) -> None:
        """Take the events that a job has still to fold after a restart: what they correct is in
        doubt, from the beginning where they do not say from where on.
        """
        self._ranges: dict[Subject, _RangesById] = {}
        self._rejected: set[Subject] = set()
        self._stored: dict[Subject, tuple[int, Sequence[int]] | None] = {}
        self._refused: dict[str, int] = {}
        for record in unfolded:
            since = refused_since(record)
            if since is not None:
                self.begin((record.key, None), since)
                self._refused[record.key] = since
            topic_id, rejected = rejected_since(record)
            for partition, first in rejected.items():
                self.begin((record.key, partition), first, topic_id=topic_id)
            self.end(record, record.offset)

    def subjects(self) -> list[Subject]:
        """Return what is in doubt."""
        return list(self._ranges)

    def begin(
        self, subject: Subject, offset: int, until: int = _UNKNOWN, topic_id: str | None = None
    ) -> None:
        """Doubt what is decided on an event and on all after it until another one; topic_id: about
        the topic that has it, None for any of the name.
        """
        ranges = self._ranges.setdefault(subject, {}).setdefault(topic_id, [])
        # What was decided between two doubts counts.
        is_behind = not ranges or ranges[-1][1] <= offset
        first = offset if is_behind else min(ranges.pop()[0], offset)
        ranges.append((first, until))

    def end(self, correction: NewRecord | LogRecord, offset: int) -> None:
        """Trust what is decided from the correcting event on, which has this offset."""
        subjects, topic_id, rejected = _corrected(correction)
        for subject in subjects:
            by_id = self._ranges.setdefault(subject, {})
            ranges = by_id.setdefault(topic_id, [(0, offset)])
            ranges[-1] = (ranges[-1][0], offset)
        self._rejected = (self._rejected - {*subjects}) | {*(subjects if rejected else ())}
        if subjects:
            self._stored |= stored_states(correction)

    def forget_before(self, offset: int) -> None:
        """Drop the doubts that ended at or before an offset up to which everything is folded."""
        left = {one: _behind(by_id, offset) for one, by_id in self._ranges.items()}
        kept = self._ranges = {one: by_id for one, by_id in left.items() if by_id}
        self._rejected &= kept.keys()
        self._stored = {one: state for one, state in self._stored.items() if one in kept}

    def by_rejection(self, topic: str, partition: int) -> bool:
        """Return whether a partition is in doubt because ZooKeeper rejected a write of it."""
        return (topic, partition) in self._rejected

    def cover(
        self, topic: str, partition: int | None, offset: int, topic_id: str | None = None
    ) -> bool:
        """Return whether what is decided on an event about a partition is in doubt; topic_id: as
        far as the topic that has it is meant, None for any of the name.
        """
        subjects: tuple[Subject, Subject] = ((topic, partition), (topic, None))
        return any(
            first <= offset < until
            for one in subjects
            for id_, ranges in self._ranges.get(one, {}).items()
            if None in (topic_id, id_) or topic_id == id_
            for first, until in ranges
        )

    def was_written(self, topic: str, offset: int) -> bool:
        """Return whether the job before wrote a topic as decided on an event, by what it said of a
        later write of the topic, which was refused.
        """
        return offset < self._refused.get(topic, 0) and not self.cover(topic, None, offset)

    def _covers_topic(self, topic: str, offset: int) -> bool:
        by_id = self._ranges.get((topic, None), {})
        return any(first < offset < until for one in by_id.values() for first, until in one)

    def lose_rows(self, decisions: Collection[SinkDecision]) -> None:
        """Mark the rows that are in doubt as lost, and topic writes in doubt as failed."""
        if not self._ranges:
            return
        for one in decisions:
            if one.kind in TOPIC_WRITES and self._covers_topic(one.topic, one.offset):
                one.failed = True
            if one.kind is DecisionKind.WRITE_PRODUCER_ID_BLOCK:
                one.failed |= self.cover(*_PRODUCER_IDS, one.offset)
        topics = {topic for topic, _ in self._ranges}
        written = written_assignments(decisions)
        for one in decisions:
            if one.kind in PARTITION_CHANGES and not topics.isdisjoint(one.topics):
                stands = independent_stops(one, written, self._stored)
                one.lost |= self._rows(one, topics) & ~stands

    def _rows(self, decision: SinkDecision, topics: set[str]) -> npt.NDArray[np.bool_]:
        """Return bool[n]: the row is in doubt; topics: of which anything is."""
        names, ids, columns = decision.topics, decision.topic_ids, decision.columns
        numbers = [number for number, name in enumerate(names) if name in topics]
        found = np.isin(columns["topic"], numbers)
        at = np.flatnonzero(found)
        rows = zip(columns["topic"][at].tolist(), columns["partition"][at].tolist(), strict=True)
        found[at] = [
            self.cover(names[topic], number, decision.offset, ids[topic]) for topic, number in rows
        ]
        return found

    def lose_topics(self, decisions: Iterable[SinkDecision], folded: int) -> None:
        """Mark what blocks made from the machines say about topics in doubt as lost; folded: the
        first event that the machines have still to fold.
        """
        for one in decisions:
            one.lose_topics([self.cover(topic, None, folded - 1) for topic in one.topics])

    def lose_what_follows(self, batch: DecidedBatch) -> None:
        """After a batch was written: lose what rests on its lost writes, and what a controller
        decided that was replaced by then.
        """
        fenced_until = batch.fenced_until
        for one in batch.decisions:
            if one.kind in PARTITION_CHANGES and one.offset < fenced_until:
                one.lost[:] = True
        self.doubt_lost_writes(batch)
        self.lose_rows(batch.decisions)

    def doubt_lost_writes(self, batch: DecidedBatch) -> None:
        """Doubt what depends on the writes that a batch has lost so far.

        What comes after a fresh load of the cluster in the same batch depends on that.
        """
        loaded_at = batch.loaded_at
        for subject, topic_id, offset in _lost_subjects(batch):
            self.begin(subject, offset, loaded_at if offset < loaded_at else _UNKNOWN, topic_id)
        for correction in lost_partition_events(batch.lost_writes):
            self._stored |= stored_states(correction)


def drop_dependents(batch: DecidedBatch) -> None:
    """Mark rows that depend on writes which a batch has lost so far as lost."""
    of_batch = Doubts()
    of_batch.doubt_lost_writes(batch)
    of_batch.lose_rows(batch.decisions)


def _behind(by_id: _RangesById, offset: int) -> _RangesById:
    """Return the ranges that end behind an offset."""
    left = {
        topic_id: [within for within in ranges if within[1] > offset]
        for topic_id, ranges in by_id.items()
    }
    return {topic_id: ranges for topic_id, ranges in left.items() if ranges}


def _lost_subjects(batch: DecidedBatch) -> list[tuple[Subject, str | None, int]]:
    """Return what the lost writes of a batch were about: subject, topic id, offset."""
    found: list[tuple[Subject, str | None, int]] = [
        ((lost.topic, lost.partition), lost.topic_id, lost.offset)
        for lost in batch.lost_writes
        if lost.topic is not None and lost.partition is not None
    ]
    blocks = [one for one in batch.lost_writes if one.tells_producer_ids]
    found += [(_PRODUCER_IDS, None, lost.offset) for lost in blocks]
    return found + [((one.topic, None), None, one.offset) for one in batch.refused_topics()]


def _corrected(event: NewRecord | LogRecord) -> tuple[list[Subject], str | None, bool]:
    """Return what an event corrects, of the topic with which id, and whether because a write was
    rejected.
    """
    if event.kind == EventKind.TOPIC_REMOVED:
        return [(topic, None) for topic in taken_back([event])], None, False
    if event.kind == EventKind.PRODUCER_ID_BLOCK_OBSERVED:
        return [_PRODUCER_IDS], None, False
    if event.kind == EventKind.PARTITION_STATES_OBSERVED:
        body = orjson.loads(event.payload)
        if body["cause"] in (StateCause.CONFLICT, StateCause.REJECTED):
            named: list[Subject] = [(event.key, partition) for partition in body["partitions"]]
            return named, body.get("topic_id"), body["cause"] == StateCause.REJECTED
    return [], None, False


def forget_doubted(image: ClusterImage, doubts: Doubts, folded: int) -> None:
    """Take what is in doubt out of an image that was made from the machines; folded: the first
    event that they have still to fold.
    """
    for topic, partition in doubts.subjects():
        if not doubts.cover(topic, partition, folded - 1, image.topic_ids.get(topic)):
            continue
        if partition is None:
            image.forget_topics([topic])
        else:
            image.forget_partition(topic, partition)
