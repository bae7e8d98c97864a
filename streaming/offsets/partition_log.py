"""One partition's log as its leader has it: the end in memory, and how far followers have come.

Nothing of it is on our disk: what counts is what the brokers in the ISR have. Those whose logs end
with the leader epoch of ZooKeeper's leader are the reference, since one leader wrote all that is of
one epoch: who has anything else cuts it off.
The log begins at the least end offset then, which is no less than what was ever acknowledged; what
stands before that, and where leader epochs before that ended, a follower says when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from streaming.gateway.ports import Paused
from streaming.offsets.batches import spans, stamped
from streaming.offsets.follower import UNKNOWN, EpochEnd, Follower
from streaming.offsets.producer_epochs import ProducerEpochs

_BESIDE_BATCH_BYTES = 1536  # about what is kept of a commit besides, until it is safe


@dataclass(slots=True)
class PartitionLog:
    """Offsets and leader epochs of one partition, and the batches that not everybody has.

    start: where the batches in memory begin, end: the next offset; both UNKNOWN until the log was
    begun. raised: whether the epoch is newer than the one that was led first; before, another term
    may have made records safe by an ISR that is not known here yet. base: what stands before our
    log, by the epoch of its last record; while the log has not begun, the reference's log. epochs:
    (leader epoch, first offset), ascending, of what this leader appended. joining: brokers that are
    asked into the ISR; they count as members until that is decided. led_s: since when this epoch is
    led, on the loop's clock. unsafe_bytes: about what is kept of all that is above the high
    watermark.
    """

    partition: int
    epoch: int
    led_s: float = 0.0
    raised: bool = False
    start: int = UNKNOWN
    end: int = UNKNOWN
    high_watermark: int = UNKNOWN
    base: EpochEnd | None = None
    followers: dict[int, Follower] = field(default_factory=dict)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    joining: frozenset[int] = frozenset()
    memory_bytes: int = 0
    unsafe_bytes: int = 0
    producers: ProducerEpochs = field(default_factory=ProducerEpochs)
    _older_ends: dict[int, EpochEnd] = field(default_factory=dict)
    _offsets: list[int] = field(default_factory=list)
    _batches: list[bytes] = field(default_factory=list)

    @property
    def begun(self) -> bool:
        """Whether it is known where the log goes on."""
        return self.end != UNKNOWN

    def follower(self, broker_id: int) -> Follower:
        """Return what is known of a follower."""
        return self.followers.setdefault(broker_id, Follower())

    def drop_follower(self, broker_id: int) -> None:
        """Forget a follower: it may come back with less than it had."""
        self.followers.pop(broker_id, None)

    def fetched(self, broker_id: int, position: int, last_epoch: int, now_s: float) -> None:
        """Note how far a follower is, whose log has last_epoch at its end; once the log has begun
        the follower's must be a part of it.
        """
        follower = self.follower(broker_id)
        follower.position, follower.last_epoch = position, last_epoch
        follower.shared_at_most = position
        follower.asks(self.end, now_s)

    def diverged(self, broker_id: int, shared_at_most: int) -> None:
        """Note that a follower's log is not a part of ours: until it has cut off what is not, what
        it has is not known.
        """
        follower = self.follower(broker_id)
        follower.position, follower.shared_at_most = UNKNOWN, shared_at_most

    def has_news_for(self, broker_id: int, records: bytes) -> bool:
        """Return whether an answer with these records has anything new for a follower, and note
        that the high watermark goes out with it.
        """
        follower = self.follower(broker_id)
        news = bool(records) or follower.sent_high_watermark < self.high_watermark
        follower.sent_high_watermark = self.high_watermark
        return news

    @contextmanager
    def asking_for(self, wanted: Iterable[int], isr: Iterable[int]) -> Iterator[None]:
        """Count the brokers that a wanted ISR adds to the present one as members while the block
        asks for it.

        They count no longer once that is decided, or refused by a pause (Paused); any other
        failure leaves open whether they join, and they go on counting.
        """
        self.joining = frozenset(wanted) - frozenset(isr)
        try:
            yield
        except Paused:
            self.joining = frozenset()
            raise
        self.joining = frozenset()

    def change_epoch(self, epoch: int, now_s: float) -> None:
        """Lead under a newer epoch from now on, with the same log.

        What followers have stays known: their logs do not change with the epoch. That they fetch
        under the newer one is the brokers' doing, which start their fetchers again when it is
        announced to them (ReplicaManager.makeFollowers); until then replica_fetch refuses what
        they ask.
        """
        self.epoch, self.led_s, self.raised = epoch, now_s, True

    def append(self, batch: bytes) -> int:
        """Append a batch and return the offset after it: safe once the high watermark is there."""
        if not self.epochs or self.epochs[-1][0] != self.epoch:
            self.epochs.append((self.epoch, self.end))
        placed = stamped(batch, self.end, self.epoch)
        (span,) = spans(placed)
        self._offsets.append(self.end)
        self._batches.append(placed)
        self.memory_bytes += len(placed)
        self.unsafe_bytes += len(placed) + _BESIDE_BATCH_BYTES
        self.end = span.last_offset + 1
        return self.end

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from the one that holds the offset on, at least one if there is."""
        found: list[bytes] = []
        size = 0
        if offset >= self.end:
            return b""
        for batch in self._batches[max(bisect_right(self._offsets, offset) - 1, 0) :]:
            if found and size + len(batch) > max_bytes:
                break
            found.append(batch)
            size += len(batch)
        return b"".join(found)

    def lacks_end_of(self, last_epoch: int, committed: int = UNKNOWN) -> bool:
        """Return whether only a witness can say where a leader epoch ended; committed: up to where
        the log that ends with it is surely a part of ours, UNKNOWN if that must not count.
        """
        return self.base is not None and self.end_of(last_epoch, committed) is None

    def learn_end_of(self, last_epoch: int, end: EpochEnd | None, base: EpochEnd) -> None:
        """Take what a witness said of a leader epoch, asked while this was the base: the newest
        epoch not after it, and its end; None if all that stands before our log is older.

        Who led in the base's epoch and wrote nothing knows of it no more when it has started again,
        or was told where it ended (LeaderEpochFileCache.truncateFromEnd).
        """
        if self.base is None or self.base.epoch != base.epoch:
            return
        if end is None:
            self.base = EpochEnd(last_epoch - 1, self.base.end_offset)
        else:
            self._older_ends[last_epoch] = end

    def witnesses(self, in_sync: Iterable[int]) -> list[int]:
        """Return the brokers whose logs hold all that stands before ours."""
        base = self.base
        if base is None:
            return []
        known = [(broker, self.follower(broker)) for broker in in_sync]
        return [
            broker
            for broker, one in known
            if one.position >= base.end_offset and (self.begun or one.last_epoch == base.epoch)
        ]

    def divergence(self, last_epoch: int, offset: int, committed: int = UNKNOWN) -> EpochEnd | None:
        """Return what is the same in our log and one with this last leader epoch and end; None if
        that is all of it, or if it is not known.

        last_epoch: UNKNOWN for a log without epochs, of which only the end is looked at; committed
        as in lacks_end_of. Source: Partition.readRecords, LeaderEpochFileCache.endOffsetFor.
        """
        found = self.end_of(last_epoch, committed)
        return None if found is None or found.covers(last_epoch, offset) else found

    def end_of(self, last_epoch: int, committed: int = UNKNOWN) -> EpochEnd | None:
        """Return the newest epoch of ours that is not after the given and where it ended, None if
        that is not known; committed as in lacks_end_of.
        """
        base = self.base
        if base is None:
            return None
        at = bisect_right(self.epochs, last_epoch, key=lambda one: one[0])
        if at:
            end = self.epochs[at][1] if at < len(self.epochs) else self.end
            return EpochEnd(self.epochs[at - 1][0], end)
        if last_epoch == UNKNOWN:
            return EpochEnd(UNKNOWN, self.end if self.begun else base.end_offset)
        if base.epoch == UNKNOWN:
            # No record has an epoch, so none begins before that one ends; a follower passes over a
            # diverging epoch of -1 (LeaderEpochFileCache.endOffsetFor, FetchResponse).
            return EpochEnd(last_epoch, base.end_offset)
        if last_epoch >= base.epoch:
            return base
        older = self._older_ends.get(last_epoch)
        if older is None and committed != UNKNOWN:
            older = EpochEnd(last_epoch, committed)
        return older and EpochEnd(older.epoch, min(older.end_offset, base.end_offset))

    def begin_if_agreed(self, in_sync: Collection[int], leader: int, now_s: float) -> bool:
        """Begin once the epoch is raised, so that in_sync is of now, and all brokers in sync have
        shown parts of one log, that of ZooKeeper's leader; return whether it did.

        Followers have caught up as of then; on a broker those in sync (Replica.resetReplicaState).
        """
        if self.begun or not self.raised:
            return False
        members = [self.follower(broker) for broker in in_sync]
        newest = self.follower(leader).last_epoch
        if self.base is None or self.base.epoch != newest:
            self._older_ends.clear()
        said = leader in in_sync and self.follower(leader).position != UNKNOWN
        like_leader = [one.position for one in members if one.last_epoch == newest]
        self.base = EpochEnd(newest, max(like_leader)) if said else None
        if not said or self.awaited(in_sync):
            return False
        offset = min(one.position for one in members)
        epoch = max(one.last_epoch for one in members if one.position == offset)
        self.base = EpochEnd(newest if epoch == UNKNOWN else epoch, offset)
        self.start = self.end = self.high_watermark = offset
        for broker, follower in self.followers.items():  # of ours nobody has more
            follower.position = min(follower.position, offset) if broker in in_sync else UNKNOWN
            follower.caught_up_s = now_s
        return True

    def awaited(self, in_sync: Iterable[int]) -> list[int]:
        """Return the brokers in sync that a log which has not begun waits for: those that have not
        said how far they are, and when all have, those that are to cut something off.
        """
        if self.begun:
            return []
        known = [(broker, self.follower(broker)) for broker in in_sync]
        if silent := [broker for broker, one in known if one.position == UNKNOWN]:
            return silent
        return [
            broker
            for broker, one in known
            if self.lacks_end_of(one.last_epoch, sure := one.all_committed(one.position))
            or self.divergence(one.last_epoch, one.position, sure)
        ]

    def unclear(self, in_sync: Iterable[int]) -> list[int]:
        """Return the brokers in sync of whose logs nobody can say how much is a part of ours, and
        which were asked themselves: their tails can be cut off once they are out of the ISR.
        """
        known = [(broker, self.follower(broker)) for broker in in_sync]
        return [
            broker
            for broker, one in known
            if UNKNOWN < one.committed < one.position and self.lacks_end_of(one.last_epoch)
        ]

    def lost_by(self, isr: Collection[int], leader: int) -> bool:
        """Return whether no broker of the ISR has what the batches in memory go on from, or nobody
        can say whether ZooKeeper's leader has, which stays in the ISR and was asked itself.
        """
        members = [self.follower(broker) for broker in isr]
        shared = [one.shared_at_most for one in members]
        less = [one is not None and one < self.start for one in shared]
        first = self.follower(leader)
        untold = first.shared_at_most == UNKNOWN and first.committed != UNKNOWN
        return self.begun and (untold or (bool(less) and all(less)))

    def advance(self, in_sync: Iterable[int]) -> bool:
        """Raise the high watermark to what all brokers in sync have; return whether it rose."""
        members = {*in_sync, *self.joining}
        positions = [min(self.follower(broker).position, self.end) for broker in members]
        if not self.begun or not positions or min(positions) <= self.high_watermark:
            return False
        before, self.high_watermark = self.high_watermark, min(positions)
        first, last = (bisect_left(self._offsets, at) for at in (before, self.high_watermark))
        safe = self._batches[first:last]
        self.unsafe_bytes -= sum(map(len, safe)) + len(safe) * _BESIDE_BATCH_BYTES
        return True

    def forget_before(self, offset: int) -> None:
        """Let go of batches that end at or before an offset."""
        keep = max(bisect_right(self._offsets, offset) - 1, 0)
        if offset >= self.end:
            keep = len(self._offsets)
        self.memory_bytes -= sum(map(len, self._batches[:keep]))
        del self._offsets[:keep], self._batches[:keep]
        self.start = self._offsets[0] if self._offsets else self.end
