"""Checks configs of new topics, so that no broker meets one in ZooKeeper that it cannot read.

A broker that finds an unreadable value fails when it loads the topic's log or applies the topic's
throttles, and does not start again. Source of names, types and ranges: Kafka 3.9's LogConfig, and
ConfigHandler for throttles, which reads less than LogConfig allows. Spaces are what Java takes for
them. Values are compared with each other where a topic sets both; the brokers' defaults are not
known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

Check: TypeAlias = Callable[[str], bool]

_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1
_FOR_EVER, _AS_RETENTION = -1, -2
_WHOLE = re.compile(r"[+-]?[0-9]{1,25}")
_FRACTION = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_THROTTLED = re.compile(r"([0-9]{1,25}):([0-9]{1,25})")
_TRIMMED = "".join(map(chr, range(ord(" ") + 1)))
_FORMAT_VERSIONS = {
    "0.8.0": 0,
    "0.8.1": 0,
    "0.8.2": 0,
    "0.9.0": 0,
    "0.10.0": 2,
    "0.10.1": 3,
    "0.10.2": 1,
    "0.11.0": 3,
    "1.0": 1,
    "1.1": 1,
    "2.0": 2,
    "2.1": 3,
    "2.2": 2,
    "2.3": 2,
    "2.4": 2,
    "2.5": 1,
    "2.6": 1,
    "2.7": 3,
    "2.8": 2,
    "3.0": 2,
    "3.1": 1,
    "3.2": 1,
    "3.3": 4,
    "3.4": 1,
    "3.5": 3,
    "3.6": 3,
    "3.7": 5,
    "3.8": 1,
    "3.9": 1,
}
"""How many internal versions (-IV0 and so on) a version has (MetadataVersion)."""


def _number(least: int, most: int) -> Check:
    return lambda text: _WHOLE.fullmatch(text) is not None and least <= int(text) <= most


def _int(least: int) -> Check:
    return _number(least, _INT_MAX)


def _long(least: int) -> Check:
    return _number(least, _LONG_MAX)


def _one_of(*values: str) -> Check:
    return lambda text: text in values


def _each_of(*values: str) -> Check:
    return lambda text: not text or all(part in values for part in _COMMA.split(text))


def _truth(text: str) -> bool:
    return text.lower() in ("true", "false")


def _false(text: str) -> bool:
    return text.lower() == "false"


def _share(text: str) -> bool:
    return _FRACTION.fullmatch(text) is not None and 0 <= float(text) <= 1


def _throttled_replicas(text: str) -> bool:
    return text in ("", "*") or all(map(_throttled, text.split(",")))


def _throttled(text: str) -> bool:
    numbers = _THROTTLED.fullmatch(text)
    return numbers is not None and all(int(number) <= _INT_MAX for number in numbers.groups())


def _format_version(text: str) -> bool:
    parts = text.split(".")
    known = ".".join(parts[: 3 if parts[0] == "0" else 2])  # 2.8.1 is read as 2.8
    release, _, internal = known.partition("-IV")
    names = [str(number) for number in range(_FORMAT_VERSIONS.get(release, 0))]
    return parts[-1] != "" and (known in _FORMAT_VERSIONS or internal in names)


TOPIC_CONFIGS: Mapping[str, tuple[Check, str]] = {
    "cleanup.policy": (_each_of("compact", "delete"), "a list of compact and delete"),
    "compression.gzip.level": (
        lambda text: text == "-1" or _number(1, 9)(text),
        "1 to 9, or -1",
    ),
    "compression.lz4.level": (_number(1, 17), "1 to 17"),
    "compression.type": (
        _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "uncompressed, zstd, lz4, snappy, gzip or producer",
    ),
    "compression.zstd.level": (_number(-131072, 22), "-131072 to 22"),
    "delete.retention.ms": (_long(0), "a number from 0"),
    "file.delete.delay.ms": (_long(0), "a number from 0"),
    "flush.messages": (_long(1), "a number from 1"),
    "flush.ms": (_long(0), "a number from 0"),
    "follower.replication.throttled.replicas": (
        _throttled_replicas,
        "* or a list of partition:broker without spaces",
    ),
    "index.interval.bytes": (_int(0), "a 32-bit number from 0"),
    "leader.replication.throttled.replicas": (
        _throttled_replicas,
        "* or a list of partition:broker without spaces",
    ),
    "local.retention.bytes": (_long(-2), "a number from -2"),
    "local.retention.ms": (_long(-2), "a number from -2"),
    "max.compaction.lag.ms": (_long(1), "a number from 1"),
    "max.message.bytes": (_int(0), "a 32-bit number from 0"),
    "message.downconversion.enable": (_truth, "true or false"),
    "message.format.version": (_format_version, "a version from 0.8.0 to 3.9 such as 3.0-IV1"),
    "message.timestamp.after.max.ms": (_long(0), "a number from 0"),
    "message.timestamp.before.max.ms": (_long(0), "a number from 0"),
    "message.timestamp.difference.max.ms": (_long(0), "a number from 0"),
    "message.timestamp.type": (
        _one_of("CreateTime", "LogAppendTime"),
        "CreateTime or LogAppendTime",
    ),
    "min.cleanable.dirty.ratio": (_share, "a number from 0 to 1"),
    "min.compaction.lag.ms": (_long(0), "a number from 0"),
    "min.insync.replicas": (_int(1), "a 32-bit number from 1"),
    "preallocate": (_truth, "true or false"),
    "remote.log.copy.disable": (_false, "false: a cluster with ZooKeeper knows no other value"),
    "remote.log.delete.on.disable": (
        _false,
        "false: a cluster with ZooKeeper knows no other value",
    ),
    "remote.storage.enable": (_truth, "true or false"),
    "retention.bytes": (_number(-(2**63), _LONG_MAX), "a number"),
    "retention.ms": (_long(-1), "a number from -1"),
    "segment.bytes": (_int(14), "a 32-bit number from 14"),
    "segment.index.bytes": (_int(4), "a 32-bit number from 4"),
    "segment.jitter.ms": (_long(0), "a number from 0"),
    "segment.ms": (_long(1), "a number from 1"),
    "unclean.leader.election.enable": (_truth, "true or false"),
}
"""By name: whether a value is allowed (spaces around it do not count), and what is, in words."""


def config_error(configs: Mapping[str, str], remote_storage: bool) -> str | None:
    """Return what is wrong with a new topic's configs, None when nothing is.

    remote_storage: whether the brokers have tiered storage (remote.log.storage.system.enable).
    """
    for name, value in sorted(configs.items()):
        if name not in TOPIC_CONFIGS:
            return f"unknown topic config {name!r}"
        allowed, words = TOPIC_CONFIGS[name]
        if not allowed(value.strip(_TRIMMED)):
            return f"topic config {name} is {value!r}, allowed: {words}"
    configs = {name: value.strip(_TRIMMED) for name, value in configs.items()}
    least, most = (configs.get(f"{end}.compaction.lag.ms") for end in ("min", "max"))
    if least is not None and most is not None and int(least) > int(most):
        return f"min.compaction.lag.ms is {least}, more than max.compaction.lag.ms {most}"
    if configs.get("remote.storage.enable", "false").lower() == "false":
        return None
    if not remote_storage:
        return (
            "remote.storage.enable is true, and the brokers have no tiered storage:"
            " remote.log.storage.system.enable = false"
        )
    return _tiering_error(configs)


def _tiering_error(configs: Mapping[str, str]) -> str | None:
    """Return what keeps a topic out of tiered storage, None when nothing does."""
    if "compact" in configs.get("cleanup.policy", ""):
        return "remote.storage.enable is true, and a compacted topic cannot have remote storage"
    for unit in ("bytes", "ms"):
        local = int(configs.get(f"local.retention.{unit}", _AS_RETENTION))
        whole = int(configs.get(f"retention.{unit}", _FOR_EVER))
        if whole > _FOR_EVER and local != _AS_RETENTION and not 0 <= local <= whole:
            return (
                f"local.retention.{unit} is {local}, allowed: 0 to {whole} (retention.{unit}), or"
                f" {_AS_RETENTION}"
            )
    return None
