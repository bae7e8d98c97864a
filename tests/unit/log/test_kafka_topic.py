"""How many brokers have a record of a topic before it is acknowledged."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from streaming.log import kafka_topic
from streaming.log.kafka_topic import MESSAGE_BYTES_MIN, create_topic, record_bytes_max
from streaming.log.location import topic_of

TOPIC = topic_of("kafka://127.0.0.1:1/events")


@pytest.mark.parametrize(
    ("replicas", "altered"),
    [([1], None), ([1, 2], None), ([1, 2, 3], {"min.insync.replicas": "2"})],
)
def test_two_of_three_replicas_have_each_record(monkeypatch, replicas, altered):
    admin = Mock()
    admin.describe_topics.return_value = [{"partitions": [{"replica_nodes": replicas}]}]
    monkeypatch.setattr(kafka_topic, "open_admin", Mock(return_value=admin))
    create_topic(TOPIC, -1)
    found = [one.args[0][0].configs for one in admin.alter_configs.call_args_list]
    assert found == ([] if altered is None else [altered])
    admin.close.assert_called_once()


@pytest.mark.parametrize(("in_sync", "warnings"), [(1, 1), (2, 0)])
def test_a_topic_that_one_broker_may_have_alone_is_warned_of(caplog, in_sync, warnings):
    values = {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "max.message.bytes": str(MESSAGE_BYTES_MIN),
        "min.insync.replicas": str(in_sync),
    }
    admin = Mock()
    configs = {key: {"value": value} for key, value in values.items()}
    admin.describe_configs.return_value = {"topic": {TOPIC.name: configs}}
    assert record_bytes_max(TOPIC, admin) == MESSAGE_BYTES_MIN
    assert caplog.text.count("min.insync.replicas = 1") == warnings
