"""What brokers know and have, compared with ZooKeeper by `helmstream verify`."""

from __future__ import annotations

from collections.abc import Sequence

from streaming.demo.cluster import DemoCluster
from streaming.settings_loader import load_settings
from streaming.verification.differences import Difference, Matter
from streaming.verification.run import run_verification

_SETTLE_S = 2.0
_TOO_OLD = "up to version"
"""Brokers of 2.0 do not say leader epochs."""


def told_otherwise(demo: DemoCluster) -> list[str]:
    """Return what is not as ZooKeeper has it, and what could not be compared; without what brokers
    keep because they were away when it ended.
    """
    return told_otherwise_under(demo.embedded.settings())


def told_otherwise_under(options: Sequence[str]) -> list[str]:
    """Return the same of the cluster that these settings are for."""
    found = run_verification(load_settings((), options), _SETTLE_S)
    differ = [str(one) for one in found.differences if not _is_kept(one)]
    return differ + [gap for gap in found.gaps if _TOO_OLD not in gap]


def _is_kept(difference: Difference) -> bool:
    """Return whether it is a replica that was moved away, or a topic that was deleted: of these
    UpdateMetadata tells nothing.
    """
    matter = difference.subject.matter
    ghost = matter is Matter.TOPIC and difference.zookeeper is None
    return ghost or matter is Matter.STRAY_REPLICA
