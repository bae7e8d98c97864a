"""How many brokers have a record of a topic before it is acknowledged."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from streaming.log import kafka_topic
from streaming.log.api import LogUnavailable
from streaming.log.kafka_topic import (
    MESSAGE_BYTES_MIN,
    UnusableTopic,
    create_topic,
    record_bytes_max,
)
from streaming.log.location import topic_of

TOPIC = topic_of("kafka://127.0.0.1:1/events")


@pytest.fixture
def admin(monkeypatch):
    """A log cluster whose topics have three replicas."""
    admin = Mock()
    admin.describe_topics.return_value = [{"partitions": [{"replica_nodes": [1, 2, 3]}]}]
    admin.alter_configs.return_value = {"topic": {TOPIC.name: "OK"}}
    monkeypatch.setattr(kafka_topic, "open_admin", Mock(return_value=admin))
    return admin


@pytest.mark.parametrize(("replicas", "altered"), [([1], []), ([1, 2], []), ([1, 2, 3], ["2"])])
def test_two_of_three_replicas_have_each_record(admin, replicas, altered):
    admin.describe_topics.return_value = [{"partitions": [{"replica_nodes": replicas}]}]
    create_topic(TOPIC, -1)
    found = [one.args[0][0].configs for one in admin.alter_configs.call_args_list]
    assert [configs["min.insync.replicas"] for configs in found] == altered
    admin.close.assert_called_once()


def test_a_broker_that_does_not_know_the_new_topic_yet_is_asked_again(admin):
    known = admin.describe_topics.return_value
    admin.describe_topics.side_effect = [[{"partitions": []}], [{"partitions": []}], known]
    create_topic(TOPIC, -1)
    assert admin.describe_topics.call_count == 3
    admin.alter_configs.assert_called_once()


def test_a_topic_that_no_broker_comes_to_know_is_told_of(admin, monkeypatch):
    monkeypatch.setattr(kafka_topic, "_ADMIN_TIMEOUT_MS", 0)
    admin.describe_topics.return_value = [{"partitions": []}]
    with pytest.raises(LogUnavailable, match=r"was made, but .* set min\.insync\.replicas"):
        create_topic(TOPIC, -1)
    admin.close.assert_called_once()


def test_a_broker_that_takes_back_what_is_not_named_keeps_what_the_topic_was_made_with(admin):
    create_topic(TOPIC, -1)
    made_with = admin.create_topics.call_args.args[0][TOPIC.name]["configs"]
    assert made_with.items() <= admin.alter_configs.call_args.args[0][0].configs.items()


def test_a_topic_that_is_made_without_what_was_refused_is_told_of(admin):
    admin.alter_configs.return_value = {"topic": {TOPIC.name: "[Error 29] not authorized"}}
    with pytest.raises(UnusableTopic, match=r"is there now, but .* refused .*\[Error 29\] not"):
        create_topic(TOPIC, -1)
    assert admin.alter_configs.call_args.kwargs == {"raise_on_unknown": False}
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


def test_a_topic_that_may_not_be_described_is_told_of():
    admin = Mock(describe_configs=Mock(return_value={"topic": {TOPIC.name: {}}}))
    with pytest.raises(LogUnavailable, match=r"cannot be read: .* \(DESCRIBE_CONFIGS\)"):
        record_bytes_max(TOPIC, admin)
