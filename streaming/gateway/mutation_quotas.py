"""How many partitions somebody may create and delete in a while (controller_mutation_rate of
KIP-599).

A rate fills a bucket of tokens, one for a partition. While the bucket is not overdrawn anything
goes, however much it overdraws it; then nothing more, until it is filled up to nothing again.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call
from streaming.gateway.ports import ReplyBody
from streaming.setting_types import INT_MAX

logger = logging.getLogger(__name__)

_KEPT_MAX = 1_000

Entity: TypeAlias = tuple[str, str]
"""Who shares a bucket: a user and a client id, "" for whichever."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What somebody may do: partitions a second, together with whoever is the same entity."""

    entity: Entity
    per_s: float


class MutationRates(Protocol):
    """Where rates are kept."""

    async def rate(self, user: str, client_id: str) -> Rate | None:
        """Return what counts for a client of a user, None when nothing limits it."""
        ...


class QuotaExceeded(Exception):
    """A bucket is overdrawn: nothing is created or deleted now."""

    error = ProtocolError.THROTTLING_QUOTA_EXCEEDED
    message = "The throttling quota has been exceeded."


class TokenBucket:
    """What is left of a rate (org.apache.kafka.common.metrics.stats.TokenBucket)."""

    __slots__ = ("_burst_s", "_now_s", "_per_s", "_tokens", "_updated_s")

    def __init__(self, burst_s: float, now_s: Callable[[], float]) -> None:
        """Be full, whatever the rate: with the tokens of burst_s seconds."""
        self._burst_s = burst_s
        self._now_s = now_s
        self._per_s = 0.0
        self._tokens = math.inf
        self._updated_s = now_s()

    def refill(self, per_s: float) -> float:
        """Return how many there are now, less than 0 when it is overdrawn; per_s: the rate."""
        now_s = self._now_s()
        came = per_s * (now_s - self._updated_s)
        self._tokens = min(self._burst_s * per_s, self._tokens + came)
        self._updated_s, self._per_s = now_s, per_s
        return self._tokens

    def take(self, count: int) -> None:
        """Take some out, or (less than 0) put them back."""
        self._tokens -= count

    @property
    def is_full(self) -> bool:
        """Whether it is as a new one."""
        return self.refill(self._per_s) >= self._burst_s * self._per_s


class MutationQuota:
    """What one request may still do (ControllerMutationQuota); strict: it is refused what it may
    not, instead of being told to wait afterwards.
    """

    def __init__(self, bucket: TokenBucket, per_s: float, *, strict: bool) -> None:
        self._bucket = bucket
        self._per_s = per_s
        self._strict = strict
        self._exceeded = False

    def take(self, partitions: int) -> None:
        """Count partitions that are to be created or deleted; raises QuotaExceeded."""
        overdrawn = self._bucket.refill(self._per_s) < 0
        if overdrawn and self._strict:
            self._exceeded = True
            raise QuotaExceeded
        self._bucket.take(partitions)
        self._exceeded |= not self._strict and self._bucket.refill(self._per_s) < 0

    def give_back(self, partitions: int) -> None:
        """Count partitions no more, of which nothing came."""
        self._bucket.take(-partitions)

    def throttle_ms(self) -> int:
        """Return how long the client has to wait, 0 if all went well."""
        if not self._exceeded:
            return 0
        owed = max(-self._bucket.refill(self._per_s), 0.0)
        return min(round(owed / self._per_s * 1000), INT_MAX) if self._per_s else INT_MAX


class Unlimited:
    """What a request may do that nothing limits."""

    def take(self, partitions: int) -> None:
        """Let it."""

    def give_back(self, partitions: int) -> None:
        """Nothing was counted."""

    def throttle_ms(self) -> int:
        """Return that nobody has to wait."""
        return 0


Quota: TypeAlias = MutationQuota | Unlimited


async def counted(
    quota: Quota,
    partitions: int,
    decide: Callable[[], Awaitable[ReplyBody]],
    error_field: str = "error",
) -> ReplyBody:
    """Return the reply to a request for some partitions, which are counted unless nothing comes of
    it, as error_field of the reply tells; raises QuotaExceeded.
    """
    if partitions <= 0:
        return await decide()
    quota.take(partitions)
    reply = await decide()
    if reply[error_field] not in {ProtocolError.NONE, ProtocolError.REQUEST_TIMED_OUT}:
        quota.give_back(partitions)
    return reply


class MutationQuotas:
    """The buckets of all who are limited."""

    def __init__(
        self, rates: MutationRates, burst_s: float, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Take where rates are kept, and for how many seconds of its rate somebody may do nothing
        and then all at once (controller.quota.window.num windows of
        controller.quota.window.size.seconds).
        """
        self._rates = rates
        self._burst_s = burst_s
        self._now_s = now_s
        self._buckets: dict[Entity, TokenBucket] = {}

    async def of(self, call: Call, strict_since: int) -> Quota:
        """Return what a request may do; strict_since: from which version on it knows that it may be
        refused.
        """
        user = call.client.principal.partition(":")[2]
        rate = await self._rates.rate(user, call.header.client_id or "")
        if rate is None:
            return Unlimited()
        bucket = self._buckets.get(rate.entity)
        if bucket is None:
            self._drop_full()
            bucket = self._buckets[rate.entity] = TokenBucket(self._burst_s, self._now_s)
        if bucket.refill(rate.per_s) < 0:
            logger.info(
                "user %r, client %r: more than %g partitions a second (controller_mutation_rate)",
                *(user, call.header.client_id, rate.per_s),
            )
        return MutationQuota(bucket, rate.per_s, strict=call.version >= strict_since)

    def _drop_full(self) -> None:
        """Forget those that are as new ones are, if there are many."""
        if len(self._buckets) < _KEPT_MAX:
            return
        for entity, bucket in [*self._buckets.items()]:
            if bucket.is_full:
                del self._buckets[entity]
