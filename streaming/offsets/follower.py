"""What is known of one broker that follows a partition which this node leads."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """A leader epoch, and the offset after its last record."""

    epoch: int
    end_offset: int

    def covers(self, last_epoch: int, offset: int) -> bool:
        """Return whether a log with this last leader epoch and end is all the same up to here."""
        return offset <= self.end_offset and last_epoch == self.epoch


@dataclass(slots=True)
class Follower:
    """What a follower has: everything before `position`, the last of it of leader epoch last_epoch;
    of its own log until ours has begun, and then of ours.

    caught_up_s: when it last had everything, on the loop's clock. asked_s, asked_end: when it last
    fetched, and the end then. sent_high_watermark: that of the last answer to it. shared_at_most:
    no more of its log than this is a part of ours, as it last showed it. committed: its own high
    watermark, if it was asked: what was acknowledged, and so a part of each log in sync.
    """

    position: int = UNKNOWN
    last_epoch: int = UNKNOWN
    caught_up_s: float = 0.0
    asked_s: float = 0.0
    asked_end: int = UNKNOWN
    sent_high_watermark: int = UNKNOWN
    shared_at_most: int | None = None
    committed: int = UNKNOWN

    def asks(self, end: int, now_s: float) -> None:
        """Note a fetch from the position, while the log goes up to end.

        It has caught up if it has all that was there now or when it fetched before: with appends
        all the time, it never has all that is there now (Replica.updateFetchStateOrThrow).
        """
        if self.position >= end:
            self.caught_up_s = now_s
        elif self.position >= self.asked_end:
            self.caught_up_s = max(self.caught_up_s, self.asked_s)
        self.asked_s, self.asked_end = now_s, end

    def keeps_up(self, end: int, late_s: float) -> bool:
        """Return whether it has everything, or had it at that time or later."""
        return self.position >= end or self.caught_up_s >= late_s

    def all_committed(self, end: int) -> int:
        """Return its committed offset if that is all of its log, which goes up to end; UNKNOWN
        otherwise.

        A broker in sync must cut off nothing on that ground: what it has beyond its own high
        watermark may have been acknowledged.
        """
        return self.committed if self.committed >= end else UNKNOWN
