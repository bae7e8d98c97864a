"""One partition's log as its leader has it: the end in memory, and how far followers have come.

Nothing of it is on our disk: what counts is what the brokers in the ISR have. The log begins where
the followers in the ISR agree (their least end offset, which is no less than what was ever
acknowledged); what stands before that is read from a follower when somebody needs it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from streaming.offsets.batches import spans, stamped
from streaming.offsets.producer_epochs import ProducerEpochs

UNKNOWN = -1


@dataclass(slots=True)
class Follower:
    """What a follower has: everything before `position`.

    caught_up_s: when it last had everything, on the loop's clock. told: the high watermark of the
    last answer to it.
    """

    position: int = UNKNOWN
    caught_up_s: float = 0.0
    told: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a follower's log parts from ours: it must cut off what it has from there on."""

    epoch: int
    end_offset: int


@dataclass(slots=True)
class PartitionLog:
    """Offsets and leader epochs of one partition, and the batches that not everybody has.

    start: where the batches in memory begin, end: the next offset; both UNKNOWN until the log was
    begun. epochs: (leader epoch, first offset), ascending, of what this leader appended. joining:
    brokers that are asked into the ISR; they count as members until that is decided.
    """

    partition: int
    epoch: int
    start: int = UNKNOWN
    end: int = UNKNOWN
    high_watermark: int = UNKNOWN
    followers: dict[int, Follower] = field(default_factory=dict)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    joining: frozenset[int] = frozenset()
    memory_bytes: int = 0
    producers: ProducerEpochs = field(default_factory=ProducerEpochs)
    _offsets: list[int] = field(default_factory=list)
    _batches: list[bytes] = field(default_factory=list)

    @property
    def begun(self) -> bool:
        """Whether it is known where the log goes on."""
        return self.end != UNKNOWN

    def follower(self, broker_id: int) -> Follower:
        """Return what is known of a follower."""
        return self.followers.setdefault(broker_id, Follower())

    def begin(self, offset: int) -> None:
        """Go on from where the followers agree."""
        self.start = self.end = self.high_watermark = offset

    def change_epoch(self, epoch: int) -> None:
        """Lead under a newer epoch; followers fetch anew, and say again how far they are."""
        self.epoch = epoch

    def append(self, batch: bytes) -> int:
        """Append a batch and return the offset after it: safe once the high watermark is there."""
        if not self.epochs or self.epochs[-1][0] != self.epoch:
            self.epochs.append((self.epoch, self.end))
        placed = stamped(batch, self.end, self.epoch)
        (span,) = spans(placed)
        self._offsets.append(self.end)
        self._batches.append(placed)
        self.memory_bytes += len(placed)
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

    def divergence(self, last_epoch: int, offset: int) -> Divergence | None:
        """Return where a log with this last leader epoch and end parts from ours, None if nowhere.

        Records of epochs before ours are the same up to where our log began
        (UnifiedLog.endOffsetForEpoch).
        """
        end, epoch = self._end_of(last_epoch)
        if offset <= end and epoch == last_epoch:
            return None
        return Divergence(epoch, min(offset, end))

    def _end_of(self, last_epoch: int) -> tuple[int, int]:
        """Return (end offset, epoch) of the newest epoch of ours that is not after the given."""
        at = bisect_right(self.epochs, last_epoch, key=lambda one: one[0])
        if at == 0:  # of a leader before us
            return (self.epochs[0][1] if self.epochs else self.end), last_epoch
        end = self.epochs[at][1] if at < len(self.epochs) else self.end
        return end, self.epochs[at - 1][0]

    def begin_if_agreed(self, in_sync: Collection[int]) -> bool:
        """Begin once all brokers in sync have said how far they are; return whether it did."""
        if self.begun:
            return False
        positions = [self.follower(broker).position for broker in in_sync]
        if not positions or UNKNOWN in positions:
            return False
        self.begin(min(positions))
        return True

    def advance(self, in_sync: Iterable[int]) -> bool:
        """Raise the high watermark to what all brokers in sync have; return whether it rose."""
        members = {*in_sync, *self.joining}
        positions = [min(self.follower(broker).position, self.end) for broker in members]
        if not self.begun or not positions or min(positions) <= self.high_watermark:
            return False
        self.high_watermark = min(positions)
        return True

    def forget_before(self, offset: int) -> None:
        """Let go of batches that end at or before an offset."""
        keep = max(bisect_right(self._offsets, offset) - 1, 0)
        if offset >= self.end:
            keep = len(self._offsets)
        self.memory_bytes -= sum(map(len, self._batches[:keep]))
        del self._offsets[:keep], self._batches[:keep]
        self.start = self._offsets[0] if self._offsets else self.end
