"""Configurations that changed while the shadow could not see it."""

from __future__ import annotations

import orjson

from state.event_kinds import EventKind
from streaming.observers.tree import Dirty
from streaming.zk.client import ZkSession
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import CONFIG_CHANGES_PATH, config_bytes, entity_config_path
from tests.integration.shadow.support import look_until, reader_of

UNCLEAN = "unclean.leader.election.enable"


def configure(live: ZkSession, entity_type: str, name: str) -> None:
    """Allow unclean elections without telling anybody."""
    path = entity_config_path(entity_type, name)
    live.ensure_path(path)
    live.set(path, config_bytes({UNCLEAN: "true"}))


def test_changes_whose_notification_is_gone_are_read_when_the_connection_is_back(
    live: ZkSession, seen: ZkReader
) -> None:
    """Brokers delete notifications that are a quarter of an hour old."""
    live.ensure_path(CONFIG_CHANGES_PATH)
    reader = reader_of(seen)
    look_until(reader, lambda look: look.load)
    configure(live, "topics", "t")
    configure(live, "brokers", "<default>")
    assert reader.look().inputs == []
    reader.dirty.mark(Dirty(reread_all=True))  # as it is marked when the connection is back
    cluster, topic = reader.look().inputs
    assert (cluster.kind, topic.kind, topic.key) == (
        EventKind.CLUSTER_CONFIG_CHANGED,
        EventKind.TOPIC_CONFIG_CHANGED,
        "t",
    )
    assert orjson.loads(cluster.payload)["config"] == {UNCLEAN: True}
    assert orjson.loads(topic.payload)["unclean"] is True
    reader.dirty.mark(Dirty(reread_all=True))
    assert reader.look().inputs == []
