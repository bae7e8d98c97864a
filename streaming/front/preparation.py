"""What a new controller puts into ZooKeeper before it reads: missing folders, features, itself."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from streaming.observers.notifications import write_fenced
from streaming.zk.client import ZkSession
from streaming.zk.fenced import FencedWriter
from streaming.zk.multiread import read_many
from streaming.zk.ops import Create
from streaming.zk.znodes import (
    BROKER_IDS_PATH,
    CONFIG_CHANGES_PATH,
    CONFIG_PATH,
    DELETE_TOPICS_PATH,
    FEATURE_PATH,
    ISR_CHANGE_PATH,
    LOG_DIR_EVENT_PATH,
    TOPICS_PATH,
    BrokerZNode,
    Endpoint,
    Feature,
    SecurityProtocol,
    broker_bytes,
    feature_bytes,
)

FOLDERS = (
    BROKER_IDS_PATH,
    TOPICS_PATH,
    CONFIG_CHANGES_PATH,
    f"{CONFIG_PATH}/topics",
    f"{CONFIG_PATH}/brokers",
    DELETE_TOPICS_PATH,
    ISR_CHANGE_PATH,
    LOG_DIR_EVENT_PATH,
)
"""Folders that we read or write below; every broker creates them too (ZkData.PersistentZkPaths)."""

_FEATURES_ENABLED = 1


def create_missing(session: ZkSession, writer: FencedWriter) -> None:
    """Create what is missing of the folders, and /feature.

    An inter-broker protocol of 2.7 or newer waits for an enabled /feature; an older one does not
    look at it. One that is there is left as it is. Raises Fenced.
    """
    paths = [*FOLDERS, FEATURE_PATH]
    data = read_many(session, paths).data
    missing = {path for path, content in zip(paths, data, strict=True) if content is None}
    for path in FOLDERS:
        if path in missing:
            session.ensure_path(path)
    if FEATURE_PATH in missing:
        write_fenced(writer, [Create(FEATURE_PATH, feature_bytes(Feature(_FEATURES_ENABLED, {})))])


def own_registration(endpoints: Sequence[Mapping[str, Any]], rack: str | None) -> bytes | None:
    """Return our own broker znode, None when we have no endpoint to announce."""
    if not endpoints:
        return None
    ends = [
        Endpoint(
            end["listener"], end["host"], end["port"], SecurityProtocol(end["security_protocol"])
        )
        for end in endpoints
    ]
    return broker_bytes(BrokerZNode(ends, rack), time.time_ns() // 1_000_000)
