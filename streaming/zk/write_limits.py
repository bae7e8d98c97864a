"""How much is written at once."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.settings import Settings

_AROUND_A_WRITE_BYTES = 8_575  # more than what a multi of one write has beside its path and data


@dataclass(frozen=True, slots=True)
class WriteLimits:
    """How many writes and bytes go into one multi, and how many multis are under way at once.

    jute_maxbuffer: what ZooKeeper takes in one request, in bytes (its property jute.maxbuffer, with
    ZooKeeper's default); multis stay under half of it, unless it is one large write.
    """

    max_ops_per_multi: int = 500
    jute_maxbuffer: int = 1_048_575
    max_in_flight: int = 10

    @property
    def max_bytes_per_multi(self) -> int:
        """What the writes of one multi may have together, in bytes."""
        return self.jute_maxbuffer // 2

    @property
    def max_bytes_per_write(self) -> int:
        """What one write may have, alone in its multi, in bytes."""
        return self.jute_maxbuffer - _AROUND_A_WRITE_BYTES

    @classmethod
    def of(cls, settings: Settings) -> WriteLimits:
        """Return what an operator has set."""
        return cls(
            max_ops_per_multi=settings.zookeeper_multi_max_operations,
            jute_maxbuffer=settings.jute_maxbuffer,
            max_in_flight=settings.zookeeper_max_in_flight_requests,
        )
