"""What configuration znodes say about decisions, and no more of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from state.topic_overrides import MIN_INSYNC, UNCLEAN, min_insync_of, unclean_of
from streaming.process.counters import Counters
from streaming.zk.multiread import read_many
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import entity_config_path, parse_config

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Overrides:
    """Values that an entity has of its own; None where it has none."""

    unclean: bool | None = None
    min_insync: int | None = None

    def over(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration with these values in place of the defaults."""
        own = {UNCLEAN: self.unclean, MIN_INSYNC: self.min_insync}
        return {**defaults, **{key: value for key, value in own.items() if value is not None}}


def overrides(path: str, data: bytes | None, counters: Counters) -> Overrides:
    """Read a configuration znode, None when it is missing.

    A broken one counts as having nothing; it is logged and counted as broken_configs.
    """
    try:
        config = parse_config(data or b"")
        return Overrides(unclean_of(config.get(UNCLEAN)), min_insync_of(config.get(MIN_INSYNC)))
    except ValueError as error:
        logger.warning("%s is passed over: %s", path, error)
        counters["broken_configs"] += 1
        return Overrides()


def topic_overrides(session: ZkReader, counters: Counters, names: Sequence[str]) -> list[Overrides]:
    """Read what topics have of their own, in the order of their names; errors as read_many."""
    if not names:
        return []
    paths = [entity_config_path("topics", name) for name in names]
    znodes = read_many(session, paths).data
    return [overrides(path, data, counters) for path, data in zip(paths, znodes, strict=True)]
