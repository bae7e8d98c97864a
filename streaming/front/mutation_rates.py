"""The rates at which clients may create and delete partitions, as brokers keep them in ZooKeeper
(KIP-599).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from streaming.front.last_read import LastRead
from streaming.gateway.mutation_quotas import Entity, Rate
from streaming.security.identity import Undecided
from streaming.settings import Settings
from streaming.zk.multiread import read_many
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import entity_config_path, parse_config
from streaming.zk.znodes.paths import DEFAULT_ENTITY, sanitized
from streaming.zk.znodes.quotas import quota_value

_RATE = "controller_mutation_rate"


class ZkMutationRates:
    """The gateway's MutationRates: what counts is read at each request that it is about, which are
    few. While ZooKeeper is away it is what was read last; nothing is created then anyhow.
    """

    def __init__(self, settings: Settings) -> None:
        """Take where ZooKeeper is; nothing is opened yet."""
        self._read = LastRead(settings, "mutation-rates", _rate)

    async def rate(self, user: str, client_id: str) -> Rate | None:
        """Return what counts for a client of a user, None when nothing limits it."""
        try:
            return await self._read.find((user, client_id))
        except Undecided:
            return None

    async def close(self) -> None:
        """End the session."""
        await self._read.close()


def _rate(session: ZkReader, key: tuple[str, str]) -> Rate | None:
    """Return the first rate that there is, in the order in which they count."""
    places = [*_places(*key)]
    configs = read_many(session, [path for path, _ in places]).data
    for (path, entity), data in zip(places, configs, strict=True):
        text = None if data is None else parse_config(data).get(_RATE)
        if text is not None:
            per_s = _per_s(path, text)
            return Rate(entity, max(per_s, 0.0)) if per_s < math.inf else None
    return None


def _places(user: str, client: str) -> Iterator[tuple[str, Entity]]:
    """Return where a rate may be, and who shares it (ClientQuotaManager.DefaultQuotaCallback)."""
    both, of_user, of_client = (user, client), (user, ""), ("", client)
    for name in (sanitized(user), DEFAULT_ENTITY):
        if client:
            for client_name in (sanitized(client), DEFAULT_ENTITY):
                yield entity_config_path("users", f"{name}/clients/{client_name}"), both
        yield entity_config_path("users", name), of_user
    if client:
        for client_name in (sanitized(client), DEFAULT_ENTITY):
            yield entity_config_path("clients", client_name), of_client


def _per_s(path: str, text: str) -> float:
    """Return a rate, infinite or NaN where it limits nobody; raises ValueError naming what is
    wrong.
    """
    try:
        return quota_value(text)
    except ValueError as error:
        raise ValueError(f"{path}: {_RATE} = {error}") from error
