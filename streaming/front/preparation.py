"""What a new controller puts into ZooKeeper before it reads: missing folders, and features."""

from __future__ import annotations

import logging

from streaming.observers.notifications import write_fenced
from streaming.settings import Settings
from streaming.zk.client import ZkSession
from streaming.zk.fenced import FencedWriter
from streaming.zk.multiread import read_many
from streaming.zk.opening import secret_acl
from streaming.zk.ops import Create, SetData, WriteOp
from streaming.zk.types import ZNode
from streaming.zk.znodes import (
    BROKER_IDS_PATH,
    CONFIG_CHANGES_PATH,
    CONFIG_PATH,
    DELETE_TOPICS_PATH,
    FEATURE_PATH,
    ISR_CHANGE_PATH,
    LOG_DIR_EVENT_PATH,
    TOPICS_PATH,
    Feature,
    feature_bytes,
    parse_feature,
)

logger = logging.getLogger(__name__)

_SECRET_FOLDER = f"{CONFIG_PATH}/brokers"
FOLDERS = (
    BROKER_IDS_PATH,
    TOPICS_PATH,
    CONFIG_CHANGES_PATH,
    f"{CONFIG_PATH}/topics",
    _SECRET_FOLDER,
    DELETE_TOPICS_PATH,
    ISR_CHANGE_PATH,
    LOG_DIR_EVENT_PATH,
)
"""Folders that we read or write below; every broker creates them too (ZkData.PersistentZkPaths)."""

_FEATURES_SINCE = (2, 7)
_FEATURE_VERSION_2_SINCE = (3, 3)


def create_missing(session: ZkSession, writer: FencedWriter, settings: Settings) -> None:
    """Create what is missing of the folders, and make /feature what brokers of our inter-broker
    protocol expect. Raises Fenced.
    """
    data = read_many(session, FOLDERS).data
    for path, content in zip(FOLDERS, data, strict=True):
        if content is None:
            acl = secret_acl(settings) if path == _SECRET_FOLDER else None  # ZkData.defaultAcls
            session.ensure_path(path, acl)
    write = feature_write(session.get(FEATURE_PATH), settings.inter_broker_protocol)
    if write is not None:
        write_fenced(writer, [write])


def feature_write(present: ZNode | None, protocol: tuple[int, int]) -> WriteOp | None:
    """Return what to write to /feature, None when it is as it has to be
    (KafkaController.maybeSetupFeatureVersioning).

    From inter-broker protocol 2.7 on brokers wait for it to be enabled, and it keeps its features;
    below it is disabled and has none. One that cannot be read is left alone.
    """
    try:
        held = None if present is None else parse_feature(present.data)
    except ValueError as error:
        logger.warning("%s", error)
        return None
    enabled = protocol >= _FEATURES_SINCE
    kept = held.max_version_levels if held is not None and held.status and enabled else {}
    wanted = Feature(int(enabled), kept, 2 if protocol >= _FEATURE_VERSION_2_SINCE else 1)
    if present is None:
        return Create(FEATURE_PATH, feature_bytes(wanted))
    if wanted == held:
        return None
    return SetData(FEATURE_PATH, feature_bytes(wanted), present.version)
