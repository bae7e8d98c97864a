"""Records of a group that could not be appended: what is taken back, and what is answered.

The front, the only one that appends in this version, does so in order and refuses what cannot be
encoded, with UNKNOWN_SERVER_ERROR, and what is too large, with MESSAGE_TOO_LARGE.
`group_records_overtaken`, and other errors, are for stores that acknowledge out of order and may
fail in other ways (the conformance stories have one): no sink of this version appends them.
"""

from __future__ import annotations

from typing import Any, cast

from state.bodies import UndoAssignment, UndoNewId, UndoTransaction
from state.decisions import Decision
from state.events import Event
from state.groups import replies
from state.groups.change_kinds import ChangeKind
from state.groups.group import Group
from state.groups.group_turn import with_group, with_name
from state.groups.membership import note_replaced, touch
from state.groups.offset_rows import revert, rows_values
from state.groups.payloads.offsets import GroupRecordsOvertaken, GroupRecordsRefused
from state.groups.rebalance import maybe_prepare
from state.groups.slot import GroupSlot
from state.groups.states import GroupState
from state.groups.tables import (
    METADATA_APPEND_ERRORS,
    OFFSET_APPEND_ERRORS,
    GroupApi,
    append_error,
)
from state.groups.turn import Turn
from state.protocol_errors import ProtocolError


def on_group_records_refused(
    slot: GroupSlot, event: Event, refusal: GroupRecordsRefused
) -> list[Decision]:
    """Take back what could not be appended."""

    def act(turn: Turn, group: Group | None) -> Group | None:
        _refused(turn, group, refusal)
        return group

    return with_name(slot, event, refusal.group, refusal.partition, act)


def _refused(turn: Turn, group: Group | None, refusal: GroupRecordsRefused) -> None:
    """Take back what the write had changed, and answer who waited for it.

    undo says what it was: the assignments of a generation, the new id of a static member, offsets
    of a transaction; without it, committed offsets.
    """
    undo = refusal.undo
    if undo is not None and "generation" in undo:
        _refuse_assignment(turn, group, refusal, undo)
    elif undo is not None and "instance" in undo:
        _refuse_new_id(turn, group, refusal, undo)
    elif undo is not None and "producer_id" in undo:
        _refuse_transaction(turn, group, refusal, undo)
    else:
        _refuse_offsets(turn, group, refusal)


def _refuse_assignment(
    turn: Turn, group: Group | None, refusal: GroupRecordsRefused, undo: UndoAssignment
) -> None:
    """Empty the assignments and rebalance, if the group is still where the write left it."""
    error = append_error(METADATA_APPEND_ERRORS, refusal.error)
    current = (
        group is not None
        and group.state is GroupState.STABLE
        and group.generation == undo["generation"]
        and group.assigned_by == refusal.write
    )
    for request_id in _waiting(refusal):
        replies.refuse_sync(
            turn, request_id, error if current else ProtocolError.REBALANCE_IN_PROGRESS
        )
    if current and group is not None:
        for member in group.members.values():
            member.assignment = ""
        maybe_prepare(turn, group, f"assignments were not stored: {error.name}")


def _refuse_new_id(
    turn: Turn, group: Group | None, refusal: GroupRecordsRefused, undo: UndoNewId
) -> None:
    """Give a static member its old id and timeouts back; the client asks again, without an id.

    It keeps the protocols that it came with (GroupCoordinator.updateStaticMemberAndRebalance).
    """
    error = append_error(METADATA_APPEND_ERRORS, refusal.error)
    if group is not None and group.instances.get(undo["instance"]) == undo["member"]:
        member = group.members[undo["member"]]
        member.session_timeout_ms = undo["session_timeout_ms"]
        member.rebalance_timeout_ms = undo["rebalance_timeout_ms"]
        group.rename(member, undo["old_member"])
        touch(turn, group, member)
        note_replaced(turn, group, member, undo["member"])
    fields = replies.join_fields("")
    if group is not None:
        fields |= {
            "generation": group.generation,
            "protocol_type": group.protocol_type,
            "protocol": group.protocol,
            "leader": undo["old_leader"],
        }
    for request_id in _waiting(refusal):
        turn.reply(request_id, GroupApi.JOIN_GROUP, error, **fields)


def _refuse_transaction(
    turn: Turn, group: Group | None, refusal: GroupRecordsRefused, undo: UndoTransaction
) -> None:
    if group is not None:
        producer = undo["producer_id"]
        revert(group.store.pending, producer, refusal.offsets)
        turn.change(
            {
                "change": ChangeKind.TRANSACTION_REVERTED,
                "producer_id": producer,
                "partitions": [list(one) for one in refusal.offsets],
            }
        )
    _answer_commit(turn, refusal, GroupApi.TXN_OFFSET_COMMIT)


def _refuse_offsets(turn: Turn, group: Group | None, refusal: GroupRecordsRefused) -> None:
    """Put back what is appended, where no later commit stands."""
    if group is not None:
        rows = group.store.rows
        for partition, appended in refusal.offsets.items():
            held = rows.get(partition)
            if held is not None and held.position == refusal.write[0]:
                if appended is None:
                    del rows[partition]
                else:
                    rows[partition] = appended
    _answer_commit(turn, refusal, GroupApi.OFFSET_COMMIT)


def _answer_commit(turn: Turn, refusal: GroupRecordsRefused, api: GroupApi) -> None:
    error = append_error(OFFSET_APPEND_ERRORS, refusal.error)
    for reply in refusal.replies:
        turn.reply(
            str(reply["request_id"]), api, error, partitions=cast("Any", reply)["partitions"]
        )


def _waiting(refusal: GroupRecordsRefused) -> list[str]:
    return [str(reply["request_id"]) for reply in refusal.replies]


def on_group_records_overtaken(
    slot: GroupSlot, event: Event, late: GroupRecordsOvertaken
) -> list[Decision]:
    """Note that records were appended late."""
    return with_group(slot, event, late.group, lambda turn, group: _overtaken(turn, group, late))


def _overtaken(turn: Turn, group: Group, late: GroupRecordsOvertaken) -> None:
    """Let records count as the last ones appended, which they are."""
    rows = {one: row._replace(position=turn.offset) for one, row in late.offsets.items()}
    if late.producer_id is None:
        group.store.rows.update(rows)
        turn.change({"change": ChangeKind.OFFSETS_COMMITTED, "offsets": rows_values(rows)})
        return
    pending = group.store.pending.get(late.producer_id, {})
    moved = {
        one: row
        for one, row in rows.items()
        if one in pending and pending[one].position == late.write[0]
    }
    pending.update(moved)
    turn.change(
        {
            "change": ChangeKind.TRANSACTION_PENDING,
            "producer_id": late.producer_id,
            "offsets": rows_values(moved),
        }
    )
