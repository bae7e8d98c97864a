"""Configs of new topics: names, types, ranges."""

from __future__ import annotations

import pytest

from streaming.gateway.topic_configs import TOPIC_CONFIGS, config_error

GOOD = {
    "cleanup.policy": [
        "compact",
        "delete",
        "compact,delete",
        " compact , delete ",
        "\x01compact\t,\x0bdelete",
        "",
    ],
    "compression.gzip.level": ["1", "9", "-1"],
    "compression.lz4.level": ["1", "17"],
    "compression.type": ["producer", "zstd", "uncompressed"],
    "compression.zstd.level": ["-131072", "22"],
    "delete.retention.ms": ["0", "9223372036854775807"],
    "file.delete.delay.ms": ["0"],
    "flush.messages": ["1"],
    "flush.ms": ["0"],
    "follower.replication.throttled.replicas": ["*", "0:1,5:3", ""],
    "index.interval.bytes": ["0", "2147483647"],
    "leader.replication.throttled.replicas": [" * ", " 0:2147483647"],
    "local.retention.bytes": ["-2"],
    "local.retention.ms": ["-2"],
    "max.compaction.lag.ms": ["1"],
    "max.message.bytes": ["0", "+5"],
    "message.downconversion.enable": ["true", "FALSE"],
    "message.format.version": [
        "3.0-IV1",
        "0.10.2",
        "2.8",
        "2.8.1",
        "3.9-IV0",
        "0.9.0.1",
        "1.0-IV0",
    ],
    "message.timestamp.after.max.ms": ["0"],
    "message.timestamp.before.max.ms": ["0"],
    "message.timestamp.difference.max.ms": ["0"],
    "message.timestamp.type": ["CreateTime", "LogAppendTime"],
    "min.cleanable.dirty.ratio": ["0", "1.0", "5e-1", " .5\t", "+1.", "1E-400"],
    "min.compaction.lag.ms": ["0"],
    "min.insync.replicas": ["1", " 2 "],
    "preallocate": ["true"],
    "remote.log.copy.disable": ["false"],
    "remote.log.delete.on.disable": ["false"],
    "remote.storage.enable": ["false"],
    "retention.bytes": ["-1", "-9223372036854775808"],
    "retention.ms": ["-1"],
    "segment.bytes": ["14"],
    "segment.index.bytes": ["4"],
    "segment.jitter.ms": ["0"],
    "segment.ms": ["1"],
    "unclean.leader.election.enable": ["True"],
}
BAD = {
    "cleanup.policy": ["Compact", "compact;delete", "compact,", "compact\u00a0,delete"],
    "compression.gzip.level": ["0", "10", "-2"],
    "compression.lz4.level": ["0", "18"],
    "compression.type": ["brotli", ""],
    "compression.zstd.level": ["-131073", "23"],
    "delete.retention.ms": ["-1", "9223372036854775808"],
    "file.delete.delay.ms": ["-1"],
    "flush.messages": ["0"],
    "flush.ms": ["-1"],
    "follower.replication.throttled.replicas": ["0-1", "*,0:1", "0:1, 5:3", "0:1,,5:3"],
    "index.interval.bytes": ["-1", "2147483648"],
    "leader.replication.throttled.replicas": ["a:b", "2147483648:1", "0:" + "9" * 5000],
    "local.retention.bytes": ["-3"],
    "local.retention.ms": ["-3"],
    "max.compaction.lag.ms": ["0"],
    "max.message.bytes": ["-1", "1_000", "1.5", "", "\u0663"],
    "message.downconversion.enable": ["yes"],
    "message.format.version": [
        "new",
        "3",
        "99.99",
        "3.0-IV9",
        "3.9-IV1",
        "4.0",
        "0.10",
        "0.9.0-IV0",
        "2.8.",
        "3.0-IV",
        "3.0-IV01",
        "1",
        "",
        "2.8-IV\u0661",
        "0.8",
        "1.0.0-IV0.",
    ],
    "message.timestamp.after.max.ms": ["-1"],
    "message.timestamp.before.max.ms": ["-1"],
    "message.timestamp.difference.max.ms": ["-1"],
    "message.timestamp.type": ["createtime"],
    "min.cleanable.dirty.ratio": [
        "1.1",
        "-0.1",
        "nan",
        "half",
        "0_0.5",
        "0.\u0665",
        "1e999",
        ".",
        "0x0p0",
    ],
    "min.compaction.lag.ms": ["-1"],
    "min.insync.replicas": ["0", "1\u00a0", "\u20032", "2\u3000", "\x851"],
    "preallocate": ["1"],
    "remote.log.copy.disable": ["true"],
    "remote.log.delete.on.disable": ["true"],
    "remote.storage.enable": ["yes"],
    "retention.bytes": ["all", "9223372036854775808", "9" * 5000],
    "retention.ms": ["-2", "1h"],
    "segment.bytes": ["13"],
    "segment.index.bytes": ["3"],
    "segment.jitter.ms": ["-1"],
    "segment.ms": ["0"],
    "unclean.leader.election.enable": ["", "truely"],
}


def test_every_config_is_tried() -> None:
    assert GOOD.keys() == BAD.keys() == TOPIC_CONFIGS.keys()


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in GOOD.items() for v in values])
def test_allowed_values(name: str, value: str) -> None:
    assert config_error({name: value}, remote_storage=False) is None


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_refused_values_are_named_with_what_is_allowed(name: str, value: str) -> None:
    error = config_error({name: value}, remote_storage=False)
    assert error is not None
    assert f"{name} is {value!r}" in error
    assert TOPIC_CONFIGS[name][1] in error


def test_an_unknown_name_is_refused() -> None:
    assert config_error({"retention.hours": "1"}, False) == "unknown topic config 'retention.hours'"


def test_the_compaction_lags_go_together() -> None:
    lags = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"}
    assert (
        config_error(lags, False)
        == "min.compaction.lag.ms is 10, more than max.compaction.lag.ms 9"
    )
    assert config_error(lags | {"max.compaction.lag.ms": "10"}, False) is None


def test_remote_storage_is_for_brokers_that_have_it() -> None:
    tiered = {"remote.storage.enable": " True"}
    said = config_error(tiered, remote_storage=False)
    assert said is not None
    assert "remote.log.storage.system.enable = false" in said
    assert config_error(tiered, remote_storage=True) is None
    assert config_error({"remote.storage.enable": "false"}, remote_storage=False) is None


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"cleanup.policy": "delete,compact"}, "a compacted topic cannot"),
        ({"cleanup.policy": "delete"}, None),
        ({"retention.ms": "9", "local.retention.ms": "10"}, "local.retention.ms is 10, allowed: 0"),
        ({"retention.ms": "9", "local.retention.ms": "-1"}, "local.retention.ms is -1"),
        ({"retention.ms": "9", "local.retention.ms": "9"}, None),
        ({"retention.ms": "9", "local.retention.ms": "-2"}, None),
        ({"retention.bytes": "9", "local.retention.bytes": "10"}, "local.retention.bytes is 10"),
        ({"retention.bytes": "-1", "local.retention.bytes": "10"}, None),
        ({"local.retention.bytes": "10", "local.retention.ms": "10"}, None),
    ],
)
def test_what_remote_storage_goes_together_with(more: dict[str, str], error: str | None) -> None:
    said = config_error({"remote.storage.enable": "true"} | more, remote_storage=True)
    assert said is None if error is None else said is not None and error in said


def test_spaces_that_java_passes_over_do_not_count() -> None:
    lags = {"min.compaction.lag.ms": "\x019\x00", "max.compaction.lag.ms": " 10\n"}
    assert config_error(lags, False) is None
    tiered = {
        "remote.storage.enable": "\x01true",
        "local.retention.ms": "\x0110",
        "retention.ms": "9",
    }
    assert str(config_error(tiered, True)).startswith("local.retention.ms is 10")
