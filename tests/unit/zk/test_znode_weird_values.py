"""Each field of each znode with what nobody writes: a ValueError, or an event that is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from state.event_kinds import EventKind
from state.events import Event, parse_payload
from state.limits import REPLICAS_MAX
from state.topic_overrides import MIN_INSYNC, UNCLEAN
from streaming.log.api import NewRecord
from streaming.log.embedded_format import checked_texts
from streaming.log.events import event
from streaming.observers.admin import elections, reassignments
from streaming.observers.brokers import registration
from streaming.observers.known_topics import observed, read_topic
from streaming.observers.overrides import Overrides, overrides
from streaming.observers.producer_ids import producer_id_block
from streaming.observers.states import state_tuples
from streaming.zk.types import ZNode
from streaming.zk.znodes import (
    feature_bytes,
    parse_cluster_id,
    parse_controller_id,
    parse_feature,
    parse_isr_change,
    parse_log_dir_event,
    parse_partition_states,
)
from tests.fixtures.documented_events import assert_documented
from tests.fixtures.json_places import Place, places, replaced

LONG = "n" * 70_000
WEIRD: tuple[Any, ...] = (
    *(None, True, 0, -1, -2, 7, 70_000, 3_000_000_000, 2**63, 1.5, 1e300),
    *("", "x", "-1", "123", "1_0", " 1", "9" * 20, "9" * 5_000, "a/b", "..", LONG),
    *([], [1], [-1, 2], [1, 1], [1.9], [True], [None], [1e20], [[1]], ["1"], [{}]),
    list(range(REPLICAS_MAX + 1)),
    *({}, {"a": 5}, {"a": {"b": 1e20}}, {"0": [1]}, {"-1": [1]}, {"01": [1]}, {"9" * 20: [1]}),
    {"9" * 5_000: [1]},
)


def znode(content: object) -> ZNode:
    data = content if isinstance(content, bytes) else orjson.dumps(content)
    return ZNode(data, version=0, czxid=5, mzxid=5, mtime_ms=0, ephemeral_owner=0)


def topic(content: object) -> list[NewRecord]:
    read = read_topic("t", znode(content))
    return [observed("t", read, 0, Overrides(), [None] * len(read.replicas))]


def broker(content: object) -> list[NewRecord]:
    body = {"registered": [registration(1, znode(content)).body()]}
    return [event(EventKind.BROKER_REGISTRATIONS_CHANGED, body)]


def states(content: object) -> list[NewRecord]:
    read = parse_partition_states([znode(content).data], [0])
    body = {"topic": "t", "cause": "read", "partitions": [0], "states": state_tuples(read)}
    return [event(EventKind.PARTITION_STATES_OBSERVED, body, "t")]


def isr_change(content: object) -> list[NewRecord]:
    changed = sorted(parse_isr_change(znode(content).data))
    return [
        event(
            EventKind.PARTITION_STATES_OBSERVED,
            {"topic": name, "cause": "notification", "partitions": [number], "states": [None]},
            name,
        )
        for name, number in changed
    ]


def log_dir(content: object) -> list[NewRecord]:
    body = {"broker_ids": [parse_log_dir_event(znode(content).data)]}
    return [event(EventKind.LOG_DIR_FAILURE_NOTIFIED, body)]


def config(content: object) -> list[NewRecord]:
    own = overrides("p", znode(content).data, Counter())
    body = {"topic": "t", "unclean": own.unclean, "min_insync_replicas": own.min_insync}
    return [event(EventKind.TOPIC_CONFIG_CHANGED, body, "t")]


def block(content: object) -> list[NewRecord]:
    return [event(EventKind.PRODUCER_ID_BLOCK_OBSERVED, producer_id_block(znode(content)))]


def feature(content: object) -> list[NewRecord]:
    feature_bytes(parse_feature(znode(content).data))
    return []


def controller(content: object) -> list[NewRecord]:
    parse_controller_id(znode(content).data)
    return []


def cluster_id(content: object) -> list[NewRecord]:
    parse_cluster_id(znode(content).data)
    return []


NAMED = {"topic": "t", "partition": 0}
REGISTERED = {
    "version": 5,
    "endpoints": ["A://h:9092"],
    "listener_security_protocol_map": {"A": "PLAINTEXT"},
    "features": {"f": {"min_version": 1, "max_version": 2}},
    "rack": "r",
    "jmx_port": -1,
    "host": "h",
    "port": 9092,
}
KINDS: dict[str, tuple[Callable[[object], list[NewRecord]], dict[str, Any]]] = {
    "topic": (
        topic,
        {
            "partitions": {"0": [1, 2], "1": [2, 1]},
            "adding_replicas": {"0": [2]},
            "removing_replicas": {"1": [1]},
            "topic_id": "xVg7K6qyTvmxpuD7RnqU_w",
            "version": 3,
        },
    ),
    "broker": (broker, REGISTERED),
    "broker of version 1": (broker, {"version": 1, "host": "h", "port": 9092, "jmx_port": 1}),
    "state": (
        states,
        {
            "controller_epoch": 1,
            "leader": 2,
            "version": 1,
            "leader_recovery_state": 1,
            "leader_epoch": 3,
            "isr": [2, 5],
        },
    ),
    "ISR change": (isr_change, {"version": 1, "partitions": [NAMED]}),
    "log directory": (log_dir, {"version": 1, "broker": 1, "event": 1}),
    "election": (lambda one: elections(orjson.dumps(one)), {"version": 1, "partitions": [NAMED]}),
    "reassignment": (
        lambda one: reassignments(orjson.dumps(one)),
        {"version": 1, "partitions": [{**NAMED, "replicas": [1, 2]}]},
    ),
    "config": (config, {"version": 1, "config": {MIN_INSYNC: "2", UNCLEAN: "true"}}),
    "producer ids": (
        block,
        {"version": 1, "broker": 1, "block_start": "0", "block_end": "999"},
    ),
    "feature": (
        feature,
        {"features": {"f": {"max_version_level": 1}}, "version": 2, "status": 1},
    ),
    "controller": (controller, {"version": 2, "brokerid": 1, "timestamp": "1"}),
    "cluster id": (cluster_id, {"version": "1", "id": "x"}),
}


def is_read(record: NewRecord) -> None:
    """The log takes the record, a machine reads the event, and each of its fields is documented."""
    checked_texts(record, 2**28)
    parse_payload(Event(0, 0, record.kind, record.key, record.payload))
    assert_documented(record.kind, orjson.loads(record.payload))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_passed_on_is_read(kind: str) -> None:
    read, ordinary = KINDS[kind]
    for record in read(ordinary):
        is_read(record)
    for place in places(ordinary):
        for value in WEIRD:
            try:
                records = read(replaced(ordinary, place, value))
            except ValueError:
                continue
            for record in records:
                is_read(record)


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("topic", ("partitions", "0"), "123"),
        ("topic", ("partitions", "0"), [1.9]),
        ("topic", ("partitions", "0"), [True]),
        ("topic", ("partitions", "0"), [-5, 2]),
        ("topic", ("partitions", "0"), [1, 1, 2]),
        ("topic", ("partitions", "0"), list(range(REPLICAS_MAX + 1))),
        ("topic", ("partitions",), {"-1": [1]}),
        ("topic", ("partitions",), {"1_0": [1]}),
        ("topic", ("topic_id",), "short"),
        ("broker", ("rack",), 7),
        ("broker", ("features",), [1]),
        ("broker", ("features",), 5),
        ("broker", ("features",), {"a": 5}),
        ("broker", ("endpoints", 0), "A://h:70000"),
        ("broker", ("endpoints", 0), "A://h:-1"),
        ("broker of version 1", ("host",), None),
        ("broker of version 1", ("host",), 7),
        ("broker of version 1", ("port",), -1),
        ("ISR change", ("partitions", 0, "topic"), LONG),
        ("election", ("partitions", 0, "topic"), LONG),
        ("reassignment", ("partitions", 0, "topic"), LONG),
        ("reassignment", ("partitions", 0, "topic"), None),
        ("reassignment", ("partitions", 0, "replicas"), "123"),
        ("log directory", ("broker",), 3_000_000_000),
    ],
)
def test_what_is_broken_says_so(kind: str, place: Place, value: Any) -> None:
    read, ordinary = KINDS[kind]
    with pytest.raises(ValueError, match="broken"):
        read(replaced(ordinary, place, value))
