"""Answers to each request by the group's state, and where the group is not served at all.

A cell is the error to answer with, or what to do. Source: Kafka's GroupCoordinator; what its
`validateGroupStatus` refuses is in LOADING_ANSWERS and `status_error`. A group that dies is removed
with the event it dies by: requests meet DEAD in Kafka's own scenarios only (`tests/conformance`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import TypeAlias

from state.groups.states import GroupState
from state.protocol_errors import ProtocolError, error_of


class GroupApi(StrEnum):
    """Requests about groups; the values stand in replies."""

    JOIN_GROUP = "join_group"
    SYNC_GROUP = "sync_group"
    LEAVE_GROUP = "leave_group"
    HEARTBEAT = "heartbeat"
    OFFSET_COMMIT = "offset_commit"
    TXN_OFFSET_COMMIT = "txn_offset_commit"
    OFFSET_FETCH = "offset_fetch"
    OFFSET_DELETE = "offset_delete"
    DELETE_GROUP = "delete_group"
    DESCRIBE_GROUPS = "describe_groups"


class Act(Enum):
    """What to do where a request is not answered by its state alone: take it, or how it is taken
    otherwise than in other states.
    """

    PROCEED = auto()
    REPEAT_UNLESS_CHANGED = auto()
    REPEAT_UNLESS_LEADER_OR_CHANGED = auto()
    GIVE_ASSIGNMENT = auto()
    DELETE_UNSUBSCRIBED = auto()


Cell: TypeAlias = ProtocolError | Act
Cells: TypeAlias = Mapping[GroupState, Cell]


def _cells(empty: Cell, preparing: Cell, completing: Cell, stable: Cell, dead: Cell) -> Cells:
    return {
        GroupState.EMPTY: empty,
        GroupState.PREPARING: preparing,
        GroupState.COMPLETING: completing,
        GroupState.STABLE: stable,
        GroupState.DEAD: dead,
    }


_E = ProtocolError
_AWAY = ProtocolError.COORDINATOR_NOT_AVAILABLE
_GO = Act.PROCEED

JOIN_NEW = _cells(_GO, _GO, _GO, _GO, _AWAY)
"""JoinGroup without a member id."""

JOIN_KNOWN = _cells(
    _E.UNKNOWN_MEMBER_ID,
    _GO,
    Act.REPEAT_UNLESS_CHANGED,
    Act.REPEAT_UNLESS_LEADER_OR_CHANGED,
    _AWAY,
)
"""JoinGroup of a member: it joins again, or gets the present generation again."""

SYNC = _cells(
    _E.UNKNOWN_MEMBER_ID,
    _E.REBALANCE_IN_PROGRESS,
    _GO,
    Act.GIVE_ASSIGNMENT,
    _AWAY,
)
"""SyncGroup: it waits for the assignment, unless there is one."""

LEAVE = _cells(_GO, _GO, _GO, _GO, _AWAY)
HEARTBEAT = _cells(_E.UNKNOWN_MEMBER_ID, _E.REBALANCE_IN_PROGRESS, _E.NONE, _E.NONE, _AWAY)
COMMIT = _cells(_GO, _GO, _E.REBALANCE_IN_PROGRESS, _GO, _AWAY)
TXN_COMMIT = _cells(_GO, _GO, _GO, _GO, _AWAY)
OFFSET_DELETE = _cells(
    _GO,
    Act.DELETE_UNSUBSCRIBED,
    Act.DELETE_UNSUBSCRIBED,
    Act.DELETE_UNSUBSCRIBED,
    _E.GROUP_ID_NOT_FOUND,
)
DELETE_GROUP = _cells(
    _GO,
    _E.NON_EMPTY_GROUP,
    _E.NON_EMPTY_GROUP,
    _E.NON_EMPTY_GROUP,
    _E.GROUP_ID_NOT_FOUND,
)


class CoordinatorPhase(StrEnum):
    """What we are for a partition of `__consumer_offsets`."""

    NONE = "none"
    LOADING = "loading"
    OWNED = "owned"


LOADING_ANSWERS: Mapping[GroupApi, ProtocolError] = {
    **dict.fromkeys(GroupApi, ProtocolError.COORDINATOR_LOAD_IN_PROGRESS),
    GroupApi.SYNC_GROUP: ProtocolError.REBALANCE_IN_PROGRESS,
    GroupApi.HEARTBEAT: ProtocolError.NONE,
}
"""Old clients know COORDINATOR_LOAD_IN_PROGRESS neither of SyncGroup nor of Heartbeat."""

EMPTY_NAME_ALLOWED = frozenset(
    {GroupApi.OFFSET_COMMIT, GroupApi.OFFSET_FETCH, GroupApi.DESCRIBE_GROUPS, GroupApi.DELETE_GROUP}
)
"""Requests that the group named "" may be asked with: offsets were once committed under it."""


def group_id_error(api: GroupApi, group: str | None) -> ProtocolError:
    """Return INVALID_GROUP_ID where a request may not name this group, else NONE."""
    if group is None or (not group and api not in EMPTY_NAME_ALLOWED):
        return ProtocolError.INVALID_GROUP_ID
    return ProtocolError.NONE


def status_error(api: GroupApi, group: str | None, phase: CoordinatorPhase) -> ProtocolError | None:
    """Return what is answered without looking at the group, None when it is to be looked at."""
    if group_id_error(api, group):
        return ProtocolError.INVALID_GROUP_ID
    if phase is CoordinatorPhase.LOADING:
        return LOADING_ANSWERS[api]
    return ProtocolError.NOT_COORDINATOR if phase is CoordinatorPhase.NONE else None


METADATA_APPEND_ERRORS: Mapping[int, ProtocolError] = {
    _E.UNKNOWN_TOPIC_OR_PARTITION: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_ENOUGH_REPLICAS: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_LEADER_OR_FOLLOWER: _E.NOT_COORDINATOR,
    _E.KAFKA_STORAGE_ERROR: _E.NOT_COORDINATOR,
    _E.REQUEST_TIMED_OUT: _E.REBALANCE_IN_PROGRESS,
    _E.MESSAGE_TOO_LARGE: _E.UNKNOWN_SERVER_ERROR,
    _E.RECORD_LIST_TOO_LARGE: _E.UNKNOWN_SERVER_ERROR,
    _E.INVALID_FETCH_SIZE: _E.UNKNOWN_SERVER_ERROR,
}
"""What is answered when a group's record could not be appended; other errors as they are."""

OFFSET_APPEND_ERRORS: Mapping[int, ProtocolError] = {
    _E.NETWORK_EXCEPTION: _E.COORDINATOR_LOAD_IN_PROGRESS,
    _E.UNKNOWN_TOPIC_OR_PARTITION: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_ENOUGH_REPLICAS: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_LEADER_OR_FOLLOWER: _E.NOT_COORDINATOR,
    _E.KAFKA_STORAGE_ERROR: _E.NOT_COORDINATOR,
    _E.MESSAGE_TOO_LARGE: _E.INVALID_COMMIT_OFFSET_SIZE,
    _E.RECORD_LIST_TOO_LARGE: _E.INVALID_COMMIT_OFFSET_SIZE,
    _E.INVALID_FETCH_SIZE: _E.INVALID_COMMIT_OFFSET_SIZE,
}
"""What is answered when committed offsets could not be appended; other errors as they are."""


def append_error(answers: Mapping[int, ProtocolError], code: int) -> ProtocolError:
    """Return what is answered to an append that ended with this code; answers: the errors of a
    group's record, or of committed offsets.
    """
    return answers.get(code) or error_of(code)
