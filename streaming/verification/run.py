"""`helmstream verify`: everything put together, from connecting to what was found."""

from __future__ import annotations

import asyncio

from streaming.preflight import check_zookeeper
from streaming.security.connector import Connector
from streaming.settings import Settings
from streaming.verification.cluster import read_cluster
from streaming.verification.looks import Found, Looks
from streaming.zk.opening import reader_of


def run_verification(settings: Settings, settle_s: float) -> Found:
    """Compare the brokers of a cluster with its ZooKeeper, and return what differs for settle_s.

    Raises NoZooKeeper, ConfigurationError when a file that the settings name cannot be used, and
    the errors of streaming.zk.errors.
    """
    check_zookeeper(settings.zookeeper_connect, settings.zookeeper_connection_timeout_ms)
    connector = Connector.of(settings)
    listener, timeout_ms = settings.inter_broker_listener_name, settings.request_timeout_ms
    with reader_of(settings) as session:
        looks = Looks(lambda: read_cluster(session), connector, listener, timeout_ms / 1000)
        return asyncio.run(looks.verify(settle_s))
