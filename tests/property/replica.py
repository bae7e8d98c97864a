"""A model of a broker's log of one partition."""

from __future__ import annotations

from streaming.offsets.batches import BatchRecord, encode_batch, read_batches, stamped
from streaming.offsets.follower import UNKNOWN, EpochEnd


class Replica:
    """A broker's log: (leader epoch, value) by offset. epochs: (leader epoch, first offset), also
    of an epoch in which it led and appended nothing. asks: whether it names no leader epoch in
    Fetch; asked_in: the leader epoch in which it was last told all that it has to cut off.
    """

    def __init__(self, asks: bool) -> None:
        self.log: list[tuple[int, bytes]] = []
        self.epochs: list[tuple[int, int]] = []
        self.high_watermark = 0
        self.asks = asks
        self.asked_in = UNKNOWN

    @property
    def last_epoch(self) -> int:
        return self.epochs[-1][0] if self.epochs else UNKNOWN

    def lead(self, epoch: int) -> None:
        if epoch > self.last_epoch:
            self.epochs.append((epoch, len(self.log)))

    def append(self, epoch: int, value: bytes) -> None:
        self.lead(epoch)
        self.log.append((epoch, value))

    def end_of(self, epoch: int) -> EpochEnd | None:
        """LeaderEpochFileCache.endOffsetFor."""
        if epoch == self.last_epoch:
            return EpochEnd(epoch, len(self.log))
        later = [start for one, start in self.epochs if one > epoch]
        if epoch == UNKNOWN or not later:
            return None
        earlier = [one for one, _ in self.epochs if one <= epoch]
        return EpochEnd(earlier[-1] if earlier else epoch, later[0])

    def cut_off(self, said: EpochEnd) -> bool:
        """Return whether that is all that it has to cut off.

        Source: AbstractFetcherThread.getOffsetTruncationState.
        """
        own = None if said.epoch == UNKNOWN else self.end_of(said.epoch)
        if own is None or own.epoch == said.epoch:
            self.truncate(min(said.end_offset, said.end_offset if own is None else own.end_offset))
            return True
        self.truncate(own.end_offset)
        return False

    def truncate(self, end: int) -> None:
        """LeaderEpochFileCache.truncateFromEnd."""
        del self.log[end:]
        self.epochs = [(epoch, start) for epoch, start in self.epochs if start < len(self.log)]
        self.high_watermark = min(self.high_watermark, len(self.log))

    def hears(self, high_watermark: int) -> None:
        """Log.updateHighWatermark."""
        self.high_watermark = min(high_watermark, len(self.log))

    def batches(self, offset: int, end: int) -> bytes:
        found = enumerate(self.log[offset:end], offset)
        return b"".join(stamped(batch(value), at, epoch) for at, (epoch, value) in found)

    def take(self, data: bytes) -> None:
        for one in read_batches(data):
            assert one.base_offset == len(self.log), "a follower takes what comes next"
            self.append(one.leader_epoch, one.records[0].value)


def batch(value: bytes) -> bytes:
    return encode_batch([BatchRecord(1, b"k", value)])
