"""Which API versions the live brokers serve, asked of each broker once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import reduce

from streaming.gateway.passing.pool import BrokerFailed, Registration, Target
from streaming.wire.apis import APIS, ApiKey
from streaming.wire.errors import WireError
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response

logger = logging.getLogger(__name__)

Range = tuple[int, int]
"""(lowest, highest) version."""
Ranges = dict[int, Range]
"""Ranges by API key."""

_VERSION = 0  # every broker answers it
_PATIENCE_S = 1.0
_AGAIN_AFTER_S = 2.0


def common_ranges(tables: Iterable[Mapping[int, Range]]) -> Ranges:
    """Return the versions that all tables have, without APIs for which there is none."""
    return reduce(_intersection, map(dict, tables)) if tables else {}


def _intersection(left: Ranges, right: Mapping[int, Range]) -> Ranges:
    both = {
        key: (max(left[key][0], right[key][0]), min(left[key][1], right[key][1]))
        for key in left.keys() & right.keys()
    }
    return {key: (low, high) for key, (low, high) in both.items() if low <= high}


def our_range(api_key: int) -> Range:
    """Return the versions of an API that this package reads and writes."""
    return APIS[api_key].min_version, APIS[api_key].max_version


class BrokerVersions:
    """The version tables of brokers, each registration's own.

    A broker that does not answer is left out until it is asked again.
    """

    def __init__(self, exchange: Callable[[Target, bytes], Awaitable[bytes]]) -> None:
        """Take how brokers are asked."""
        self._exchange = exchange
        self._tables: dict[Registration, Ranges] = {}
        self._asking: dict[Target, asyncio.Task[None]] = {}
        self._asked_s: dict[Target, float] = {}
        self._common: dict[str, Ranges] = {}

    async def common(self, listener: str, brokers: Collection[Target]) -> Ranges:
        """Return what all brokers of a listener serve that answered; waits a moment for those not
        asked yet.
        """
        unknown = [one for one in brokers if one.registration not in self._tables]
        asking = [self._ask_soon(broker) for broker in unknown]
        if under_way := [task for task in asking if task is not None]:
            await asyncio.wait(under_way, timeout=_PATIENCE_S)
            return self._ranges(brokers)  # others may be registered by now
        if listener not in self._common:
            self._common[listener] = self._ranges(brokers)
        return self._common[listener]

    def keep(self, registrations: Collection[Registration]) -> None:
        """Forget the brokers that are not registered any more."""
        kept = set(registrations)
        self._common.clear()
        self._tables = {one: table for one, table in self._tables.items() if one in kept}
        self._asked_s = {one: at for one, at in self._asked_s.items() if one.registration in kept}

    def _ranges(self, brokers: Collection[Target]) -> Ranges:
        found = (self._tables.get(one.registration) for one in brokers)
        return common_ranges([table for table in found if table is not None])

    async def close(self) -> None:
        """Cancel what is being asked."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)

    def _ask_soon(self, broker: Target) -> asyncio.Task[None] | None:
        """Return the question that is under way, after asking unless the last was just now."""
        now_s = asyncio.get_running_loop().time()
        task = self._asking.get(broker)
        if task is None and now_s - self._asked_s.get(broker, -_AGAIN_AFTER_S) >= _AGAIN_AFTER_S:
            self._asked_s[broker] = now_s
            task = self._asking[broker] = asyncio.create_task(self._ask(broker))
            task.add_done_callback(lambda _: self._asking.pop(broker, None))
        return task

    async def _ask(self, broker: Target) -> None:
        request = encode_request(ApiKey.API_VERSIONS, _VERSION, 0, None, {})
        try:
            answer = await self._exchange(broker, request)
            _, body = decode_response(ApiKey.API_VERSIONS, _VERSION, answer)
        except (BrokerFailed, WireError) as error:
            logger.info("the versions of %s are not known: %s", broker, error)
            return
        self._tables[broker.registration] = {
            one["api_key"]: (one["min_version"], one["max_version"]) for one in body["api_keys"]
        }
        self._common.clear()
