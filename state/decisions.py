"""What is decided: the kinds of decisions and how one event's decisions are ordered.

A decision's body is a JSON object (`state.bodies`) or a column block, fixed per kind
(`BLOCK_KINDS`); docs/decision-log.md describes both. Several slots may decide about one event;
`state.merge` makes one canonical sequence of what they say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag, StrEnum

import orjson

from state.blocks import Column
from state.bodies import Body
from state.matrix import Bools
from state.reply_bodies import Reply


class DecisionKind(StrEnum):
    """Kinds of decisions, named by what to do."""

    UPDATE_BROKERS = "update_brokers"
    CREATE_TOPIC = "create_topic"
    REWRITE_ASSIGNMENT = "rewrite_assignment"
    MARK_TOPIC_DELETION = "mark_topic_deletion"
    UNMARK_TOPIC_DELETION = "unmark_topic_deletion"
    DELETE_TOPIC = "delete_topic"
    FORGET_TOPIC = "forget_topic"
    WRITE_PRODUCER_ID_BLOCK = "write_producer_id_block"
    CHANGE_PARTITIONS = "change_partitions"
    STOP_REPLICAS = "stop_replicas"
    COMPLETE_REASSIGNMENT = "complete_reassignment"
    REMOVE_REASSIGNMENTS = "remove_reassignments"
    DELETE_ADMIN_ZNODE = "delete_admin_znode"
    DELETE_DELEGATION_TOKEN = "delete_delegation_token"
    REPORT_REMAINING = "report_remaining"
    REPORT_AT_RISK = "report_at_risk"
    CHECK_SHUTDOWN = "check_shutdown"
    PROPOSE_ELECTIONS = "propose_elections"
    REPORT_IMBALANCE = "report_imbalance"
    ASK_LOG_ENDS = "ask_log_ends"
    REFUSE_TRANSITION = "refuse_transition"
    SET_PAUSE = "set_pause"
    CHANGE_GROUP = "change_group"
    SET_ASIDE = "set_aside"
    ARM_TIMER = "arm_timer"
    REPLY = "reply"


KIND_ORDER: Mapping[str, int] = {kind: place for place, kind in enumerate(DecisionKind)}
"""Order of the kinds within one event."""

BLOCK_KINDS = frozenset(
    {
        DecisionKind.CHANGE_PARTITIONS,
        DecisionKind.STOP_REPLICAS,
        DecisionKind.REPORT_REMAINING,
        DecisionKind.REPORT_AT_RISK,
        DecisionKind.PROPOSE_ELECTIONS,
        DecisionKind.REPORT_IMBALANCE,
        DecisionKind.ASK_LOG_ENDS,
        DecisionKind.REFUSE_TRANSITION,
    }
)


class Action(IntFlag):
    """What to do about a row of change_partitions."""

    WRITE = 1
    CREATE = 2
    LEADER_AND_ISR = 4
    UPDATE_METADATA = 8
    IS_NEW = 16
    DELETED = 32


def acts(columns: Mapping[str, Column], action: Action) -> Bools:
    """Return bool[n]: which rows of change_partitions have one of these actions."""
    found: Bools = columns["actions"] & int(action) != 0
    return found


class Rule(IntEnum):
    """Why a partition row is as it is: the last rule of the event that touched it."""

    NONE = 0
    NEW_PARTITION_ELECTED = 1
    OFFLINE_PARTITION_ELECTED = 2
    UNCLEAN_ELECTED = 3
    REASSIGNED_PARTITION_ELECTED = 4
    PREFERRED_REPLICA_ELECTED = 5
    CONTROLLED_SHUTDOWN_ELECTED = 6
    LEADER_LOST = 7
    REPLICA_LEFT_ISR = 8
    ISR_ALTERED_BY_LEADER = 9
    STATE_OBSERVED = 10
    LEADER_EPOCH_BUMPED = 11
    REPLICA_STARTED = 12
    REPLICA_STOPPED = 13
    CONTROLLER_STARTED = 14


ELECTIONS = (
    Rule.NEW_PARTITION_ELECTED,
    Rule.OFFLINE_PARTITION_ELECTED,
    Rule.UNCLEAN_ELECTED,
    Rule.REASSIGNED_PARTITION_ELECTED,
    Rule.PREFERRED_REPLICA_ELECTED,
    Rule.CONTROLLED_SHUTDOWN_ELECTED,
)
"""The rules that give a partition a leader."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of one machine about one event; body is JSON or a column block by kind."""

    offset: int
    kind: DecisionKind
    body: bytes


def json_decision(offset: int, kind: DecisionKind, body: Body | Reply) -> Decision:
    """Return a decision with a JSON body; the same values give the same bytes."""
    return Decision(
        offset, kind, orjson.dumps(body, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    )
