"""Committing offsets, in transactions or not, and removing them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from state.groups import records
from state.groups.change_kinds import ChangeKind
from state.groups.group import Group
from state.groups.member import NEVER
from state.groups.membership import member_error, sender_error, touch
from state.groups.offset_rows import OffsetRow, OffsetRows, publish, rows_values
from state.groups.payloads.offsets import (
    OffsetCommitRequested,
    OffsetDeleteRequested,
    OffsetsAppended,
    OffsetToCommit,
    TransactionCompleted,
    TxnOffsetCommitRequested,
)
from state.groups.payloads.requests import DeleteGroupRequested
from state.groups.presence import GenerationView
from state.groups.rebalance import move
from state.groups.states import GroupState
from state.groups.subscription import CONSUMER
from state.groups.tables import (
    COMMIT,
    DELETE_GROUP,
    OFFSET_APPEND_ERRORS,
    OFFSET_DELETE,
    TXN_COMMIT,
    Act,
    append_error,
)
from state.groups.turn import Step, Turn
from state.protocol_errors import ProtocolError
from state.topic_partition import TopicPartition

Commit: TypeAlias = OffsetCommitRequested | TxnOffsetCommitRequested


def commit(turn: Turn, group: Group, request: Commit) -> None:
    """Take one OffsetCommit or TxnOffsetCommit."""
    transactional = isinstance(request, TxnOffsetCommitRequested)
    error = _verification_error(request) or commit_error(group, request)
    if error is not None:
        turn.reply(request.request_id, request.api, error, partitions=[])
        return
    member = group.members.get(request.member)
    if member is not None and not transactional:
        touch(turn, group, member)
    _store(turn, group, request)


def _verification_error(request: Commit) -> ProtocolError | None:
    if isinstance(request, OffsetCommitRequested) or not request.verification_error:
        return None
    return append_error(OFFSET_APPEND_ERRORS, request.verification_error)


def commit_error(group: GenerationView, request: Commit) -> ProtocolError | None:
    """Return why a commit is not taken from who sends it, or not in the group's state."""
    error = _committer_error(group, request)
    if error is not None:
        return error
    transactional = isinstance(request, TxnOffsetCommitRequested)
    cell = (TXN_COMMIT if transactional else COMMIT)[group.state]
    return cell if isinstance(cell, ProtocolError) else None


def _committer_error(group: GenerationView, request: Commit) -> ProtocolError | None:
    """Return why a commit is not from a member of the present generation, or from nobody's.

    Who is no member (generation -1) may commit while the group is empty, and in transactions always
    unless it names a member: the first versions of TxnOffsetCommit name none.
    """
    if group.state is GroupState.DEAD:
        return None
    empty = group.state is GroupState.EMPTY
    if request.generation < 0 and empty:
        return None
    transactional = isinstance(request, TxnOffsetCommitRequested)
    if request.generation >= 0 or request.member or request.instance is not None:
        check = member_error if transactional else sender_error
        error = check(group, request.member, request.instance)
        if error is None and request.generation != group.generation:
            error = ProtocolError.ILLEGAL_GENERATION
        return error
    return None if transactional or empty else ProtocolError.UNKNOWN_MEMBER_ID


def _store(turn: Turn, group: Group, request: Commit) -> None:
    rows, too_large = _storable(turn, request)
    error = ProtocolError.OFFSET_METADATA_TOO_LARGE
    if not rows:
        turn.reply(
            request.request_id,
            request.api,
            error if too_large else ProtocolError.NONE,
            partitions=[],
        )
        return
    if isinstance(request, TxnOffsetCommitRequested):
        step = _keep_pending(turn, group, request, rows)
    else:
        group.store.rows.update(rows)
        step = turn.write(records.committed_offsets(turn.now_ms))
        step.change({"change": ChangeKind.OFFSETS_COMMITTED, "offsets": rows_values(rows)})
    step.reply(
        request.request_id,
        request.api,
        ProtocolError.NONE,
        partitions=[[*partition, error] for partition in too_large],
    )


def _storable(turn: Turn, request: Commit) -> tuple[OffsetRows, list[TopicPartition]]:
    """Return the rows of what is committed, and the partitions whose metadata is too large."""
    expire_ms = None
    if isinstance(request, OffsetCommitRequested) and request.retention_ms is not None:
        expire_ms = min(turn.now_ms + request.retention_ms, NEVER)
    limit = turn.config.offset_metadata_max_bytes
    rows: OffsetRows = {}
    too_large: list[TopicPartition] = []
    for one in request.offsets:
        if one.metadata and _java_length(one.metadata) > limit:
            too_large.append(one.partition)
        else:
            rows[one.partition] = _row(turn, one, expire_ms)
    return rows, too_large


def _keep_pending(
    turn: Turn, group: Group, request: TxnOffsetCommitRequested, rows: OffsetRows
) -> Step:
    """Keep rows until the transaction ends."""
    group.store.pending.setdefault(request.producer_id, {}).update(rows)
    step = turn.write(
        records.committed_offsets(turn.now_ms),
        producer=(request.producer_id, request.producer_epoch),
        undo={"producer_id": request.producer_id},
    )
    step.change(
        {
            "change": ChangeKind.TRANSACTION_PENDING,
            "producer_id": request.producer_id,
            "offsets": rows_values(rows),
        }
    )
    return step


def _row(turn: Turn, one: OffsetToCommit, expire_ms: int | None) -> OffsetRow:
    commit_ms = turn.now_ms if one.commit_ms is None else one.commit_ms
    return OffsetRow(one.offset, one.leader_epoch, one.metadata, commit_ms, expire_ms, turn.offset)


def take_appended(turn: Turn, group: Group, appended: OffsetsAppended) -> None:
    """Take offsets that are in the topic already; whoever committed them was answered."""
    rows = {one.partition: _row(turn, one, None) for one in appended.offsets}
    group.store.rows.update(rows)
    turn.change({"change": ChangeKind.OFFSETS_COMMITTED, "offsets": rows_values(rows)})


def _java_length(text: str) -> int:
    """Return the length in UTF-16 units, which is how the limit is meant."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def complete_transaction(turn: Turn, group: Group, done: TransactionCompleted) -> None:
    """Publish a transaction's offsets, or drop them; one that was appended later stays."""
    rows = group.store.pending.pop(done.producer_id, None)
    if rows is None:
        return
    visible = publish(group.store.rows, dict(sorted(rows.items()))) if done.committed else {}
    turn.change(
        {
            "change": ChangeKind.TRANSACTION_COMPLETED,
            "producer_id": done.producer_id,
            "committed": done.committed,
            "offsets": rows_values(visible),
        }
    )


def delete_offsets(turn: Turn, group: Group, request: OffsetDeleteRequested) -> bool:
    """Delete offsets of topics without a subscribed member; return whether the group is gone."""
    cell = OFFSET_DELETE[group.state]
    if cell is Act.DELETE_UNSUBSCRIBED and group.protocol_type != CONSUMER:
        cell = ProtocolError.NON_EMPTY_GROUP
    if isinstance(cell, ProtocolError):
        turn.reply(request.request_id, request.api, cell, partitions=[])
        return False
    kept: set[TopicPartition] = set()
    if cell is Act.DELETE_UNSUBSCRIBED:
        topics = group.subscribed
        kept = {one for one in request.partitions if topics is None or one[0] in topics}
    free = [one for one in request.partitions if one not in kept]
    gone = bool(free) and remove_offsets(turn, group, *group.store.remove(free))
    errors = [
        [*one, ProtocolError.GROUP_SUBSCRIBED_TO_TOPIC if one in kept else ProtocolError.NONE]
        for one in request.partitions
    ]
    turn.reply(request.request_id, request.api, ProtocolError.NONE, partitions=errors)
    return gone


def delete_group(turn: Turn, group: Group, request: DeleteGroupRequested) -> bool:
    """Delete a group without members; return whether it is gone."""
    cell = DELETE_GROUP[group.state]
    if isinstance(cell, ProtocolError):
        turn.reply(request.request_id, request.api, cell)
        return False
    committed, _ = group.store.remove(sorted(group.store.rows))
    move(turn, group, GroupState.DEAD)
    remove_offsets(turn, group, committed)
    turn.reply(request.request_id, request.api, ProtocolError.NONE)
    return True


def remove_topics(turn: Turn, group: Group, topics: Collection[str]) -> bool:
    """Remove the offsets of topics that ceased to exist; return whether the group is gone
    (GroupCoordinator.handleDeletedPartitions).
    """
    held = group.store.of_topics(topics)
    return bool(held) and remove_offsets(turn, group, *group.store.remove(held))


def remove_offsets(
    turn: Turn,
    group: Group,
    committed: Sequence[TopicPartition],
    unpublished: Sequence[TopicPartition] = (),
    *,
    reason: str = "deleted",
) -> bool:
    """Write tombstones for offsets that were taken out, and for a group that has nothing left;
    return whether it is gone.

    unpublished: partitions that only open transactions had offsets of. A group without a generation
    only ever held offsets: it has no record to end.
    """
    partitions = [*committed, *unpublished]
    if group.state is GroupState.EMPTY and group.store.is_empty:
        move(turn, group, GroupState.DEAD)
    gone = group.state is GroupState.DEAD
    tombstones = records.offset_tombstones(committed, turn.now_ms)
    if gone and group.generation > 0:
        tombstones.append(records.group_tombstone(turn.now_ms))
    if partitions:
        turn.change(
            {
                "change": ChangeKind.OFFSETS_REMOVED,
                "partitions": [list(one) for one in partitions],
                "reason": reason,
            }
        )
    if gone:
        turn.change({"change": ChangeKind.GROUP_REMOVED, "reason": reason})
    if tombstones:
        turn.write(tombstones, quiet=True)
    return gone
