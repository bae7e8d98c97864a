"""An event log in a topic of the very cluster that is controlled is refused before a start."""

from __future__ import annotations

import json
import logging

import pytest
from kafka.admin import KafkaAdminClient

from streaming.errors import ConfigurationError
from streaming.log.location import KafkaTopic
from streaming.settings_loader import load_settings
from streaming.supervisor.log_cluster import check_log_cluster
from streaming.zk.client import ZkSession
from streaming.zk.znodes import CLUSTER_ID_PATH
from tests.fixtures.log_cluster import LogCluster


def check(zookeeper: str, event_log: KafkaTopic) -> None:
    chosen = [f"zookeeper.connect={zookeeper}", f"event.log.url={event_log}"]
    check_log_cluster(load_settings(overrides=chosen, environment={}))


def name_cluster(session: ZkSession, cluster_id: str) -> None:
    session.ensure_path("/cluster")
    session.create(CLUSTER_ID_PATH, json.dumps({"version": "1", "id": cluster_id}).encode())


def test_the_controlled_clusters_own_topic_is_refused(
    zk_session: ZkSession, zookeeper: str, log_cluster: LogCluster, log_topic: KafkaTopic
) -> None:
    check(zookeeper, log_topic)  # no broker was there yet
    admin = KafkaAdminClient(bootstrap_servers=log_cluster.bootstrap_server)
    own = admin.describe_cluster()["cluster_id"]
    admin.close()
    name_cluster(zk_session, own)
    with pytest.raises(ConfigurationError, match=rf"event\.log\.url is .*controlled \({own}\)"):
        check(zookeeper, log_topic)


def test_a_topic_of_another_cluster_is_taken_and_so_is_one_that_is_away(
    zk_session: ZkSession,
    zookeeper: str,
    log_topic: KafkaTopic,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name_cluster(zk_session, "another")
    with caplog.at_level(logging.WARNING, "streaming"):
        check(zookeeper, log_topic)
        assert caplog.messages == []
        monkeypatch.setattr("streaming.supervisor.log_cluster._TIMEOUT_MS", 1_000)
        check(zookeeper, KafkaTopic("127.0.0.1:9", "events"))
    assert "does not answer" in caplog.text
