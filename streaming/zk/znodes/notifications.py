"""Notification and configuration znodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import orjson

from state.json_values import int32, text
from streaming.zk.znodes.topic import partition_number, topic_name

T = TypeVar("T")


def parse_isr_change(data: bytes) -> list[tuple[str, int]]:
    """Read an /isr_change_notification child; raises ValueError naming what is wrong."""
    return _parsed(
        data,
        lambda z: [
            (topic_name(p["topic"]), partition_number(p["partition"])) for p in z["partitions"]
        ],
    )


def parse_log_dir_event(data: bytes) -> int:
    """Read the broker id of a /log_dir_event_notification child; raises ValueError."""
    return _parsed(data, lambda z: int32(z["broker"]))


def config_bytes(config: Mapping[str, str]) -> bytes:
    """Write an entity's configuration (version 1), keys in the order given."""
    return orjson.dumps({"version": 1, "config": dict(config)})


def parse_config(data: bytes) -> dict[str, str]:
    """Read an entity's configuration; empty data is an empty one. Raises ValueError."""
    if not data:
        return {}
    return _parsed(data, lambda z: {str(k): str(v) for k, v in z["config"].items()})


def config_change_bytes(entity_path: str) -> bytes:
    """Write a /config/changes child, for example for topics/t."""
    return orjson.dumps({"version": 2, "entity_path": entity_path})


def parse_config_change(data: bytes) -> str:
    """Read the entity path of a /config/changes child; raises ValueError.

    Version 2 has the path, version 1 the entity's type and name (ZkConfigManager). Tools older than
    both write a topic's name alone: brokers pass it over, but Kafka's controller knows the topic's
    configuration without it.
    """
    return _parsed(data, _entity_path)


def _entity_path(znode: Any) -> str:
    if isinstance(znode, str):
        return f"topics/{topic_name(znode)}"
    if "entity_path" in znode:
        return text(znode["entity_path"])
    return f"{text(znode['entity_type'])}/{text(znode['entity_name'])}"


def _parsed(data: bytes, read: Callable[[Any], T]) -> T:
    try:
        return read(orjson.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"broken znode: {error!r} in {data[:200]!r}") from error
