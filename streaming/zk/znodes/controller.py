"""Formats of the controller's own znodes and of the single values beside them."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from state.json_values import int32

CONTROLLER_PATH = "/controller"
CONTROLLER_EPOCH_PATH = "/controller_epoch"
FEATURE_PATH = "/feature"
PRODUCER_ID_BLOCK_PATH = "/latest_producer_id_block"
CLUSTER_ID_PATH = "/cluster/id"
MIGRATION_PATH = "/migration"
"""A KRaft controller that is to take the cluster over makes it (MigrationZNode)."""
_QUORUMS = -1
_LAST_PRODUCER_ID = 2**63 - 1 - 1000  # another block fits behind it


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """A block of producer ids handed to a broker; both ends belong to it."""

    broker_id: int
    block_start: int
    block_end: int

    @property
    def next_producer_id(self) -> int:
        """With which the next block begins; a KRaft quorum writes that block as its own
        (ZkMigrationClient.writeProducerId, migrateProducerId).
        """
        return self.block_start if self.broker_id == _QUORUMS else self.block_end + 1


@dataclass(frozen=True, slots=True)
class Feature:
    """The cluster's finalized features; status 1 means enabled (IBP 2.7 and newer), 0 disabled.

    version 1 is written by IBP below 3.3.
    """

    status: int
    max_version_levels: dict[str, int]
    version: int = 2


def controller_bytes(controller_id: int, timestamp_ms: int) -> bytes:
    """Write /controller, version 2 (ControllerZNode)."""
    return orjson.dumps(
        {
            "version": 2,
            "brokerid": controller_id,
            "timestamp": str(timestamp_ms),
            "kraftControllerEpoch": -1,
        }
    )


def parse_controller_id(data: bytes) -> int | None:
    """Read who holds /controller; None when the znode is broken."""
    try:
        return int32(orjson.loads(data)["brokerid"])
    except (ValueError, KeyError, TypeError):
        return None


def parse_kraft_epoch(data: bytes) -> int | None:
    """Read which epoch of a KRaft quorum holds /controller; None when no KRaft controller does."""
    try:
        epoch = orjson.loads(data).get("kraftControllerEpoch")
    except (ValueError, AttributeError):
        return None
    return epoch if isinstance(epoch, int) and epoch >= 0 else None


def epoch_bytes(epoch: int) -> bytes:
    """Write /controller_epoch."""
    return str(epoch).encode("ascii")


def parse_epoch(data: bytes) -> int:
    """Read /controller_epoch; raises ValueError when it is not a number of 32 bits."""
    return int32(int(data))


def feature_bytes(feature: Feature) -> bytes:
    """Write /feature, version 1 or 2."""
    keys = ("max_version_level", "min_version_level")[: 3 - feature.version]
    levels = {
        name: dict.fromkeys(keys, level) for name, level in feature.max_version_levels.items()
    }
    return orjson.dumps({"features": levels, "version": feature.version, "status": feature.status})


def parse_feature(data: bytes) -> Feature:
    """Read /feature, versions 1 and 2; raises ValueError naming what is wrong."""
    try:
        znode = orjson.loads(data)
        levels = {name: int32(v["max_version_level"]) for name, v in znode["features"].items()}
        return Feature(int32(znode["status"]), levels, int32(znode["version"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"broken {FEATURE_PATH}: {error!r} in {data!r}") from error


def producer_id_block_bytes(block: ProducerIdBlock) -> bytes:
    """Write /latest_producer_id_block, version 1; the ends are strings."""
    return orjson.dumps(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.block_start),
            "block_end": str(block.block_end),
        }
    )


def parse_producer_id_block(data: bytes) -> ProducerIdBlock:
    """Read /latest_producer_id_block; raises ValueError naming what is wrong."""
    try:
        znode = orjson.loads(data)
        block = ProducerIdBlock(
            int32(znode["broker"]), int(znode["block_start"]), int(znode["block_end"])
        )
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"broken {PRODUCER_ID_BLOCK_PATH}: {error!r} in {data!r}") from error
    if not 0 <= block.block_start <= block.block_end <= _LAST_PRODUCER_ID:
        raise ValueError(f"broken {PRODUCER_ID_BLOCK_PATH}: no such block: {data!r}")
    return block


def parse_cluster_id(data: bytes) -> str:
    """Read /cluster/id; raises ValueError naming what is wrong."""
    try:
        return str(orjson.loads(data)["id"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"broken {CLUSTER_ID_PATH}: {error!r} in {data!r}") from error
