"""Unclean elections of the replica whose log ends last, once that is known.

Two steps through the log: where nobody in sync can lead and an unclean leader may, the machine
decides that the replicas are to be asked where their logs end (`machine`); what they said is the
event that is folded here. Source: KIP-966, Unclean Recovery.
"""

from __future__ import annotations

import numpy as np

from state.decisions import Decision
from state.events import Event
from state.matrix import NONE, Rows
from state.partitions import deletion, election
from state.partitions.changes import Changes
from state.partitions.reassignment import complete_reassignments
from state.partitions.slot import Slot
from state.partitions.starting import elect_offline
from state.payloads.log_ends import LogEnds, LogEndsReported


def on_log_ends_reported(slot: Slot, event: Event, reported: LogEndsReported) -> list[Decision]:
    """Elect for the partitions that still have no leader.

    One that had a leader since its replicas were asked has another leader epoch: they are asked
    again.
    """
    if not slot.authority.is_active or slot.table.topic(reported.topic) is None:
        return []
    changes = Changes.about_topics(slot.table, {reported.topic: event.offset})
    found = slot.table.find(reported.topic, reported.partitions)
    here = found >= 0
    at = found[here]
    as_asked = slot.table.rows.leader_epoch[at] == reported.leader_epochs[here]
    found[here] = np.where(as_asked, at, NONE)
    take_log_ends(slot, changes, found, reported.logs)
    elect_offline(slot, changes, at)
    complete_reassignments(slot, changes, at)
    return deletion.finish_with_deletions(slot, changes)


def take_log_ends(slot: Slot, changes: Changes, found: Rows, logs: LogEnds) -> None:
    """Note whose log ends last of the replicas that can lead.

    found int64[n]: the rows that logs are about, -1 for none.
    """
    at = found[found >= 0]
    assignment, live = slot.table.rows.replicas[at], slot.online_replicas(at)
    changes.note_longest(at, election.longest_log(assignment, live, logs.of(found >= 0)))
