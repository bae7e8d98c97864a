"""Who stood for leader in an election, and why each of the others could not have it.

An election notes itself only where a slot was given a list for it (`Slot.ballots`): deciding costs
nothing more, and explaining a decision is folding its event again on the state it met.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from state.decisions import Rule
from state.matrix import NONE, Bools, Int32s, Rows, contains, unpad
from state.partitions.election import preferred_replicas

if TYPE_CHECKING:
    from state.partitions.slot import Slot


class Finding(StrEnum):
    """What became of a candidate; the first that holds."""

    ELECTED = "elected"
    NOT_REGISTERED = "its broker is not registered"
    SHUTTING_DOWN = "its broker is shutting down"
    LOG_DIR_FAILED = "its log directory has failed"
    BEING_REMOVED = "the reassignment takes it away"
    NOT_IN_SYNC = "not in the ISR"
    DEPRIORITIZED = "leads where nobody else can (leader.deprioritized.list)"
    NOT_PREFERRED = "not the preferred replica"
    SHORTER_LOG = "its log ends earlier, or it was not known where"
    LATER_IN_LIST = "could lead, but comes later in the replica list"


@dataclass(frozen=True, slots=True)
class Ballot:
    """One election of one partition: how it was held and what each replica was found to be.

    rule: of the strategy, or UNCLEAN_ELECTED where somebody outside the ISR won. leader: -1 when
    nobody could lead. candidates: in the order of the replica list.
    """

    topic: str
    partition: int
    rule: Rule
    isr: tuple[int, ...]
    leader: int
    unclean_allowed: bool
    candidates: tuple[tuple[int, Finding], ...]


def note_election(
    slot: Slot,
    at: Rows,
    rule: Rule,
    leader: Int32s,
    *,
    unclean: Bools | None = None,
    unclean_allowed: Bools | None = None,
    by_log_end: Bools | None = None,
) -> None:
    """Add a ballot for each of the rows `at` to the slot's list, if it has one.

    leader int32[k]: the outcome, not in the rows yet. unclean, unclean_allowed bool[k]: who won was
    not in the ISR, or need not have been; by_log_end bool[k]: had to be the one whose log ends
    last. None where no election was of that kind.
    """
    if slot.ballots is None:
        return
    never = np.zeros(len(at), dtype=bool)
    unclean = never if unclean is None else unclean
    allowed = never if unclean_allowed is None else unclean_allowed
    longest = never if by_log_end is None else unclean & by_log_end
    slot.ballots.extend(
        _ballots(slot, at, rule, leader, unclean=unclean, allowed=allowed, longest=longest)
    )


def _ballots(
    slot: Slot,
    at: Rows,
    rule: Rule,
    leader: Int32s,
    *,
    unclean: Bools,
    allowed: Bools,
    longest: Bools,
) -> Iterator[Ballot]:
    rows = slot.table.rows
    findings = _findings(slot, at, rule, leader, unclean=unclean, longest=longest)
    new = rule is Rule.NEW_PARTITION_ELECTED
    for row, place in enumerate(at.tolist()):
        candidates = zip(rows.replicas[place].tolist(), findings[row], strict=True)
        yield Ballot(
            slot.table.topics[int(rows.topic[place])].name,
            int(rows.partition[place]),
            Rule.UNCLEAN_ELECTED if unclean[row] else rule,
            () if new else tuple(unpad(rows.isr[place])),
            int(leader[row]),
            bool(allowed[row]),
            tuple((broker, finding) for broker, finding in candidates if broker != NONE),
        )


def _findings(
    slot: Slot, at: Rows, rule: Rule, leader: Int32s, *, unclean: Bools, longest: Bools
) -> list[list[Finding]]:
    rows = slot.table.rows
    replicas = rows.replicas[at]
    in_sync = contains(rows.isr[at], replicas) | unclean[:, None]
    if rule is Rule.NEW_PARTITION_ELECTED:
        in_sync = np.ones(replicas.shape, dtype=bool)
    last = slot.deprioritized(at)
    preferred = preferred_replicas(replicas, last)
    others = (replicas != preferred[:, None]) & (rule is Rule.PREFERRED_REPLICA_ELECTED)
    conditions = [
        (replicas == leader[:, None], Finding.ELECTED),
        (~slot.brokers.registered(replicas), Finding.NOT_REGISTERED),
        (slot.brokers.is_shutting_down(replicas), Finding.SHUTTING_DOWN),
        (rows.offline_dir[at], Finding.LOG_DIR_FAILED),
        (rows.removing[at] & (rule is Rule.REASSIGNED_PARTITION_ELECTED), Finding.BEING_REMOVED),
        (~in_sync, Finding.NOT_IN_SYNC),
        (last, Finding.DEPRIORITIZED),
        (others, Finding.NOT_PREFERRED),
        (np.broadcast_to(longest[:, None], replicas.shape), Finding.SHORTER_LOG),
    ]
    names = list(Finding)
    index = np.select(
        [condition for condition, _ in conditions],
        [names.index(finding) for _, finding in conditions],
        default=names.index(Finding.LATER_IN_LIST),
    )
    return [[names[number] for number in row] for row in index.tolist()]
