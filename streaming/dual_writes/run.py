"""`helmstream verify --metadata-log`: everything put together.

A quorum writes to ZooKeeper after it has written its log. So what counts is what ZooKeeper has
otherwise in two looks in a row while the quorum's value stayed as it was. One that began with a
snapshot of ZooKeeper's (`helmstream kraft-snapshot`) writes nothing there, and is compared too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from streaming.dual_writes.knowledge import Difference, Known, differences
from streaming.dual_writes.quorum import MigrationState, QuorumKnowledge
from streaming.dual_writes.znodes import ZooKeeperKnowledge, read_knowledge
from streaming.metadata_log.reading import MetadataLog, UnreadableMetadataLog
from streaming.preflight import check_zookeeper
from streaming.settings import Settings
from streaming.verification.looks import LOOKS_MAX
from streaming.zk.opening import reader_of

_DOES_NOT_WRITE = {
    MigrationState.NONE: "its log has no migration of a cluster, and no topics",
    MigrationState.PRE_MIGRATION: "it has not taken the cluster's metadata over yet",
    MigrationState.POST_MIGRATION: "the migration is finished",
}
"""Why a quorum writes nothing to ZooKeeper."""


@dataclass(slots=True)
class Found:
    """What was found by the last look: what was compared, what differs, and what could not be
    compared. offset: the one after the last record of the quorum's log. others: configurations,
    access control lists, tokens and the like.
    """

    offset: int = 0
    topics: int = 0
    partitions: int = 0
    others: int = 0
    differences: list[Difference] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)


def compare(settings: Settings, folder: Path, settle_s: float) -> Found:
    """Compare what a quorum knows, by the metadata log in a folder, with ZooKeeper, and return what
    differs for settle_s.

    Raises UnreadableMetadataLog, NoZooKeeper, ConfigurationError when a file that the settings name
    cannot be used, and the errors of streaming.zk.errors.
    """
    check_zookeeper(settings.zookeeper_connect, settings.zookeeper_connection_timeout_ms)
    with reader_of(settings) as session:
        return settled(lambda: read_quorum(folder), lambda: read_knowledge(session), settle_s)


@dataclass(frozen=True, slots=True)
class Quorum:
    """What a quorum knows up to an offset."""

    known: Known
    migration: MigrationState
    offset: int

    @property
    def began_with_a_snapshot(self) -> bool:
        """Whether it has topics without a migration."""
        return self.migration is MigrationState.NONE and bool(self.known.topics)


def read_quorum(folder: Path) -> Quorum:
    """Read what a quorum knows; raises UnreadableMetadataLog and OSError."""
    log, knowledge = MetadataLog(folder), QuorumKnowledge()
    try:
        knowledge.apply(log.records())
    except (KeyError, ValueError) as error:
        raise UnreadableMetadataLog(
            f"{log.folder}: a record after offset {log.end} fits nothing before it: {error!r}"
        ) from error
    return Quorum(knowledge.known, knowledge.migration, log.end)


def settled(
    quorum: Callable[[], Quorum], zookeeper: Callable[[], ZooKeeperKnowledge], settle_s: float
) -> Found:
    """Look until what differs has differed for settle_s, or does not any more.

    What goes on to change with each look is told as a gap.
    """
    found, before = Found(), dict[tuple[object, str], Difference]()
    for look in range(LOOKS_MAX):
        if look:
            time.sleep(settle_s)
        theirs = quorum()
        why = _DOES_NOT_WRITE.get(theirs.migration)
        if why is not None and not theirs.began_with_a_snapshot:
            return Found(theirs.offset, gaps=[f"the quorum does not write to ZooKeeper: {why}"])
        ours = zookeeper()
        known = theirs.known
        found = Found(theirs.offset, len(known.topics), known.partitions, known.others)
        found.gaps += ours.gaps
        now = list(differences(ours.known, known, ours.left_out))
        found.differences = [one for one in now if _is_same(one, before)]
        moving = len(now) - len(found.differences)
        if not moving:
            return found
        before = {(one.subject, one.what): one for one in now}
    found.gaps.append(f"{moving} things changed from each look to the next")
    return found


def _is_same(one: Difference, before: dict[tuple[object, str], Difference]) -> bool:
    """Return whether the quorum had the same in the look before."""
    last = before.get((one.subject, one.what))
    return last is not None and last.quorum == one.quorum
