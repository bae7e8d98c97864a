"""Our znode bytes against those that Kafka 3.9.2's own encoders wrote (tools: kafka.zk.*ZNode)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.zk.znodes import (
    BrokerZNode,
    Feature,
    ProducerIdBlock,
    TopicZNode,
    broker_bytes,
    config_bytes,
    config_change_bytes,
    controller_bytes,
    epoch_bytes,
    feature_bytes,
    parse_broker,
    parse_config,
    parse_config_change,
    parse_controller_id,
    parse_epoch,
    parse_feature,
    parse_isr_change,
    parse_kraft_epoch,
    parse_log_dir_event,
    parse_producer_id_block,
    parse_topic,
    partition_state_bytes,
    producer_id_block_bytes,
    topic_bytes,
)
from tests.fixtures.znodes import isr_change_bytes, log_dir_event_bytes

GOLDEN = {
    name: text.encode()
    for name, text in json.loads(
        (Path(__file__).parent / "golden" / "znodes-kafka-3.9.2.json").read_text()
    ).items()
}
TIMESTAMP_MS = 1795198701169


def test_partition_states_in_one_call_with_different_isr_sizes_and_recovery():
    written = partition_state_bytes(
        leader=[1, -1, 5],
        leader_epoch=[2, 0, 12],
        isr=[[1, 2, 3], [3, -1, -1], [5, -1, -1]],
        controller_epoch=[1, 17, 17],
        recovery=[0, 0, 1],
    )
    assert written == [
        GOLDEN["state 1 2 [1, 2, 3] 1 0"],
        GOLDEN["state -1 0 [3] 17 0"],
        GOLDEN["state 5 12 [5] 17 1"],
    ]


def test_partition_state_of_no_rows_and_of_an_empty_isr():
    none = np.zeros(0, dtype=np.int32)
    assert partition_state_bytes(none, none, np.zeros((0, 3), np.int32), 1, none) == []
    assert partition_state_bytes([-1], [3], [[-1, -1]], 4, [0]) == [
        b'{"controller_epoch":4,"leader":-1,"version":1,"leader_epoch":3,"isr":[]}'
    ]


def topic_of(partitions: int, topic_id: str | None, *, moving: bool = False) -> TopicZNode:
    numbers = range(partitions)
    return TopicZNode(
        {p: [1 + p % 3, 1 + (p + 1) % 3] for p in numbers},
        topic_id,
        {p: [9, 8] for p in numbers if moving and p % 7 == 1},
        {p: [1] for p in numbers if moving and p % 5 == 2},
    )


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("topic3", topic_of(3, "AAAAAAdbzRUAAAAAOt5osQ")),
        ("topic12", topic_of(12, "__________sAAAAAAAAATQ")),
        ("topic12noid", topic_of(12, None, moving=True)),
        ("topic150", topic_of(150, "__________sAAAAAAAAATQ", moving=True)),
    ],
)
def test_a_topic_is_written_as_kafka_does_and_read_back(name, topic):
    assert topic_bytes(topic) == GOLDEN[name]
    assert parse_topic(GOLDEN[name]) == topic


LISTENERS = ["CLIENT", "INTERNAL"]


def broker_of(version: int, rack: str | None, names: list[str]) -> BrokerZNode:
    endpoints = [
        Endpoint(
            listener=name, host=f"h{port}", port=port, security_protocol=SecurityProtocol.PLAINTEXT
        )
        for port, name in enumerate(names, start=9092)
    ]
    return BrokerZNode(endpoints, rack, version=version)


@pytest.mark.parametrize(
    ("name", "broker"),
    [
        ("b5", broker_of(5, None, LISTENERS)),
        ("b5rack", broker_of(5, "r1", LISTENERS)),
        ("b4", broker_of(4, None, LISTENERS)),
        ("b4rack", broker_of(4, "r", ["CLIENT"])),
        ("b3", broker_of(3, "r", ["PLAINTEXT"])),
        ("b2", broker_of(2, None, ["PLAINTEXT"])),
    ],
)
def test_a_broker_is_written_as_kafka_does_and_read_back(name, broker):
    assert broker_bytes(broker, TIMESTAMP_MS) == GOLDEN[name]
    assert parse_broker(GOLDEN[name]) == broker


def test_broker_with_five_listeners_is_read_with_their_protocols():
    broker = parse_broker(GOLDEN["b5three"])
    assert [(e.listener, e.port, e.security_protocol.name) for e in broker.endpoints] == [
        ("CLIENT", 9092, "PLAINTEXT"),
        ("INTERNAL", 9093, "PLAINTEXT"),
        ("SCONTROL", 9094, "SSL"),
        ("SX", 9095, "SSL"),
        ("SY", 9096, "SSL"),
    ]


def test_broker_version_1_and_ipv6():
    first = parse_broker(b'{"version":1,"host":"a","port":9092,"jmx_port":9999,"timestamp":"2"}')
    assert first.endpoints == [
        Endpoint(
            listener="PLAINTEXT", host="a", port=9092, security_protocol=SecurityProtocol.PLAINTEXT
        )
    ]
    second = parse_broker(b'{"version":2,"jmx_port":-1,"endpoints":["SSL://[::1]:9093"]}')
    assert second.endpoints == [
        Endpoint(listener="SSL", host="::1", port=9093, security_protocol=SecurityProtocol.SSL)
    ]


@pytest.mark.parametrize(
    ("name", "written", "parse", "value"),
    [
        ("controller", controller_bytes(1000, 1795198916712), parse_controller_id, 1000),
        ("epoch", epoch_bytes(7), parse_epoch, 7),
        (
            "config",
            config_bytes({"a": "b", "cleanup.policy": "compact", "retention.ms": "5"}),
            parse_config,
            {"a": "b", "cleanup.policy": "compact", "retention.ms": "5"},
        ),
        ("config0", config_bytes({}), parse_config, {}),
        ("cc", config_change_bytes("topics/t"), parse_config_change, "topics/t"),
        ("logdir", log_dir_event_bytes(3), parse_log_dir_event, 3),
        (
            "pid",
            producer_id_block_bytes(ProducerIdBlock(2, 0, 999)),
            parse_producer_id_block,
            ProducerIdBlock(2, 0, 999),
        ),
        ("feature", feature_bytes(Feature(1, {})), parse_feature, Feature(1, {})),
    ],
)
def test_a_znode_with_a_single_value_is_written_as_kafka_does_and_read_back(
    name, written, parse, value
):
    assert written == GOLDEN[name]
    assert parse(GOLDEN[name]) == value


def test_isr_changes_are_of_topics_with_legal_names():
    written = isr_change_bytes([("u", 1), ('v"x', 2)])
    assert written == GOLDEN["isr"]
    with pytest.raises(ValueError, match="no legal name"):
        parse_isr_change(written)
    assert parse_isr_change(written.replace(b'\\"', b"-")) == [("u", 1), ("v-x", 2)]


@pytest.mark.parametrize(
    ("epoch", "found"), [(b"5", 5), (b"0", 0), (b"-1", None), (b'"5"', None), (b"null", None)]
)
def test_who_of_zookeeper_and_kraft_holds_the_role(epoch, found):
    assert parse_kraft_epoch(b'{"brokerid":3000,"kraftControllerEpoch":' + epoch + b"}") == found
    for other in (b'{"brokerid":3,"timestamp":"1","version":1}', b"[]", b"{", GOLDEN["controller"]):
        assert parse_kraft_epoch(other) is None
