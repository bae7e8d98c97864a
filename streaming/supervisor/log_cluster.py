"""Whether the event log's cluster is another one than the cluster that is controlled."""

from __future__ import annotations

import logging
from contextlib import closing

from streaming.errors import ConfigurationError
from streaming.log.api import LogError
from streaming.log.kafka_topic import open_admin, told_as_unavailable
from streaming.log.location import topic_of
from streaming.settings import Settings
from streaming.zk.errors import ZooKeeperError
from streaming.zk.opening import reader_of
from streaming.zk.znodes import CLUSTER_ID_PATH, parse_cluster_id

logger = logging.getLogger(__name__)

_TIMEOUT_MS = 5_000


def check_log_cluster(settings: Settings) -> None:
    """Raise ConfigurationError when the event log is a topic of the cluster that is controlled: who
    decides where its leader is would have to write there first.

    Where one of them does not answer nothing is known, and whoever needs it says so.
    """
    if not settings.event_log_url:
        return
    try:
        controlled, holding = _controlled_cluster(settings), _log_cluster(settings)
    except (ZooKeeperError, LogError, ValueError) as error:
        logger.warning("event.log.url may be a topic of the controlled cluster: %s", error)
        return
    if controlled == holding:
        raise ConfigurationError(
            f"event.log.url is {settings.event_log_url!r}, a topic of the cluster that is"
            f" controlled ({controlled}), whose leader could not be elected while it has none;"
            " allowed is a topic of another cluster, or empty: a folder under data.dir"
        )


def _controlled_cluster(settings: Settings) -> str:
    """Return its id, "" until its first broker was there."""
    with closing(reader_of(settings)) as reader:
        reader.connect(settings.zookeeper_connection_timeout_ms)
        znode = reader.get(CLUSTER_ID_PATH)
    return "" if znode is None else parse_cluster_id(znode.data)


def _log_cluster(settings: Settings) -> str:
    topic = topic_of(settings.event_log_url)
    with closing(open_admin(topic, _TIMEOUT_MS)) as admin, told_as_unavailable(topic):
        return str(admin.describe_cluster()["cluster_id"])
