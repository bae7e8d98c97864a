"""What configuration znodes say about decisions, and no more of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from state.cluster.config import DEPRIORITIZED, broker_ids
from state.topic_overrides import MIN_INSYNC, UNCLEAN, min_insync_of, unclean_of
from streaming.process.counters import Counters
from streaming.zk.multiread import read_many
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import entity_config_path, parse_config

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Overrides:
    """Values that a topic has of its own; None where it has none."""

    unclean: bool | None = None
    min_insync: int | None = None


def _deprioritized_of(text: str | None) -> str | None:
    return None if text is None else ",".join(map(str, broker_ids(text)))


_OF_CLUSTER: Mapping[str, Callable[[str | None], Any]] = {
    UNCLEAN: unclean_of,
    MIN_INSYNC: min_insync_of,
    DEPRIORITIZED: _deprioritized_of,
}


def overrides(path: str, data: bytes | None, counters: Counters) -> Overrides:
    """Read a topic's configuration znode, None when it is missing.

    A broken one counts as having nothing; it is logged and counted as broken_configs.
    """
    try:
        config = parse_config(data or b"")
        return Overrides(unclean_of(config.get(UNCLEAN)), min_insync_of(config.get(MIN_INSYNC)))
    except ValueError as error:
        _passed_over(f"{path} is", error, counters)
        return Overrides()


def cluster_overrides(
    data: bytes | None, keys: Iterable[str], counters: Counters
) -> dict[str, Any]:
    """Return what the brokers' cluster-wide defaults, None where there are none, say of these keys.

    A broken value counts as missing (DynamicBrokerConfig.removeInvalidProps), as all do where none
    can be read; each is logged and counted as broken_configs.
    """
    found: dict[str, Any] = {}
    try:
        config = parse_config(data or b"")
    except ValueError as error:
        _passed_over("the brokers' cluster-wide defaults are", error, counters)
        return found
    for key in keys:
        try:
            value = _OF_CLUSTER[key](config.get(key))
        except ValueError as error:
            _passed_over(f"{key} of the brokers' cluster-wide defaults is", error, counters)
            continue
        if value is not None:
            found[key] = value
    return found


def _passed_over(what: str, error: ValueError, counters: Counters) -> None:
    logger.warning("%s passed over: %s", what, error)
    counters["broken_configs"] += 1


def topic_overrides(session: ZkReader, counters: Counters, names: Sequence[str]) -> list[Overrides]:
    """Read what topics have of their own, in the order of their names; errors as read_many."""
    if not names:
        return []
    paths = [entity_config_path("topics", name) for name in names]
    znodes = read_many(session, paths).data
    return [overrides(path, data, counters) for path, data in zip(paths, znodes, strict=True)]
