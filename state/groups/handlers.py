"""Which function of a group slot folds which payload: the groups it concerns, and what is done."""

from __future__ import annotations

from state.decisions import Decision, DecisionKind
from state.events import Event
from state.groups import ownership, refusals
from state.groups.buckets import bucket_of_key, group_bucket
from state.groups.concern import Gone, arm, concern, described, each, finish
from state.groups.expiration import expire
from state.groups.group import Group
from state.groups.offsets import complete_transaction, remove_topics, take_appended
from state.groups.payloads.offsets import (
    CommittedTopicsDeleted,
    GroupRecordsOvertaken,
    GroupRecordsRefused,
    OffsetCommitRequested,
    OffsetDeleteRequested,
    OffsetsAppended,
    OffsetsExpirationDue,
    TransactionCompleted,
    TxnOffsetCommitRequested,
)
from state.groups.payloads.ownership import (
    GroupCoordinatorConfigured,
    GroupObserved,
    GroupPartitionsElected,
    GroupPartitionsLoaded,
    GroupPartitionsResigned,
    GroupTimerDue,
)
from state.groups.payloads.requests import (
    DeleteGroupRequested,
    GroupRequest,
    Heartbeat,
    HeartbeatsReceived,
    JoinGroupRequested,
    LeaveGroupRequested,
    SyncGroupRequested,
    SyncsCame,
)
from state.groups.presence import heartbeat
from state.groups.requests import create, handle_request
from state.groups.slot import GroupSlot
from state.groups.tables import CoordinatorPhase
from state.groups.timers import NOTHING, Known, fire
from state.groups.turn import Turn
from state.handlers import Handlers


def on_group_request(slot: GroupSlot, event: Event, request: GroupRequest) -> list[Decision]:
    """Take a request about one group, which may not exist."""
    bucket = slot.bucket(group_bucket(request.group))
    group = bucket.get(request.group)
    turn = Turn(event.offset, event.time_ms, slot.config)
    if group is not None:
        fire(turn, group, event.time_ms)
        turn.now_ms = event.time_ms
    kept = handle_request(turn, group, request, slot.phase(request.partition))
    if kept is not None:
        return finish(bucket, turn, kept, gone=False)
    nobody = Group(request.group, request.partition)
    return finish(bucket, turn, group or nobody, gone=True)


def on_offsets_appended(slot: GroupSlot, event: Event, appended: OffsetsAppended) -> list[Decision]:
    """Take offsets that the topic has; a group that is gone by now is there again by that."""
    if slot.phase(appended.partition) is not CoordinatorPhase.OWNED:
        return []

    bucket = slot.bucket(group_bucket(appended.group))
    if bucket.get(appended.group) is not None:
        return concern(
            slot, event, appended.group, lambda turn, group: take_appended(turn, group, appended)
        )
    turn = Turn(event.offset, event.time_ms, slot.config)
    group = create(turn, appended.group, appended.partition)
    take_appended(turn, group, appended)
    return finish(bucket, turn, group, gone=False)


def on_committed_topics_deleted(
    slot: GroupSlot, event: Event, deleted: CommittedTopicsDeleted
) -> list[Decision]:
    """Remove a group's offsets of topics that are gone."""
    if slot.phase(deleted.partition) is not CoordinatorPhase.OWNED:
        return []
    return concern(
        slot,
        event,
        deleted.group,
        lambda turn, group: remove_topics(turn, group, deleted.topics),
    )


def on_heartbeats_received(
    slot: GroupSlot, event: Event, received: HeartbeatsReceived
) -> list[Decision]:
    """Keep members that were heard of, and wait for no SyncGroup that came."""
    synced = {one.group: one for one in received.synced}
    of_group: dict[str, list[Heartbeat]] = {one: [] for one in synced}
    for one in received.heartbeats:
        of_group.setdefault(one.group, []).append(one)

    def act(turn: Turn, group: Group) -> None:
        for one in of_group[group.name]:
            heartbeat(turn, group, one)

    found: list[Decision] = []
    for name, heartbeats in of_group.items():
        heard_ms = {
            one.member: event.time_ms - one.silent_ms
            for one in heartbeats
            if one.silent_ms is not None
        }
        found += concern(slot, event, name, act, Known(heard_ms, synced.get(name)))
    return found


def _only_timers(turn: Turn, group: Group) -> None:
    """Nothing: the timers that are due fire before."""


def on_group_timer_due(slot: GroupSlot, event: Event, due: GroupTimerDue) -> list[Decision]:
    """Let the timers of a bucket fire, and tell the clock the next deadline: of all groups once."""
    number = bucket_of_key(event.key)
    bucket = slot.bucket(number)
    found = each(slot, event, bucket.due(event.time_ms), _only_timers)
    bucket.armed_ms = None
    return [
        *(one for one in found if one.kind is not DecisionKind.ARM_TIMER),
        *arm(bucket, event.offset, number, bucket.first()),
    ]


def on_offsets_expiration_due(
    slot: GroupSlot, event: Event, due: OffsetsExpirationDue
) -> list[Decision]:
    """Remove what has expired in a bucket."""
    bucket = slot.bucket(bucket_of_key(event.key))
    retention_ms = slot.config.offsets_retention_ms
    names = sorted(
        name
        for name, entry in bucket.entries.items()
        if entry.deadline_ms <= event.time_ms or entry.may_expire(event.time_ms, retention_ms)
    )
    return each(slot, event, names, expire)


def on_group_coordinator_configured(
    slot: GroupSlot, event: Event, changed: GroupCoordinatorConfigured
) -> list[Decision]:
    """Take configuration, after all timers that were due under the old one."""
    found = []
    for number in slot.numbers():
        due = slot.bucket(number).due(event.time_ms)
        found.extend(each(slot, event, due, _only_timers))
    slot.config = slot.config.configured(changed.config)
    return found


def on_group_partitions_elected(
    slot: GroupSlot, event: Event, became: GroupPartitionsElected
) -> list[Decision]:
    """Begin to load partitions."""
    ownership.elected(slot, became.partitions, became.epoch)
    return []


def on_group_partitions_loaded(
    slot: GroupSlot, event: Event, done: GroupPartitionsLoaded
) -> list[Decision]:
    """Serve partitions."""
    ownership.loaded(slot, done.partitions, done.epoch)
    return []


def on_group_partitions_resigned(
    slot: GroupSlot, event: Event, ended: GroupPartitionsResigned
) -> list[Decision]:
    """Forget the groups of partitions that another broker coordinates."""

    def act(turn: Turn, group: Group) -> Gone:
        ownership.unload(turn, group)
        return True

    given_up = ownership.resigned(slot, ended)
    found: list[Decision] = []
    if given_up:
        for number in slot.numbers():
            bucket = slot.bucket(number)
            for name in bucket.of_partitions(given_up):
                group = bucket.get(name)
                assert group is not None
                known = _everybody(group, event.time_ms) if ended.unheard else NOTHING
                found += concern(slot, event, name, act, known)
            if not bucket.entries:
                # The clock may have forgotten the timer with the role, and nobody needs it now.
                bucket.armed_ms = None
    return found


def _everybody(group: Group, now_ms: int) -> Known:
    """Return that all members of a group were heard of, and have sent their SyncGroup."""
    synced = SyncsCame(group.name, group.generation, tuple(group.members))
    return Known(dict.fromkeys(group.members, now_ms), synced)


def on_group_observed(slot: GroupSlot, event: Event, seen: GroupObserved) -> list[Decision]:
    """Take a group over, while its partition is loading."""
    held = slot.partitions.get(seen.partition)
    bucket = slot.bucket(group_bucket(seen.group))
    if held != (seen.epoch, CoordinatorPhase.LOADING) or seen.group in bucket.entries:
        return []
    turn = Turn(event.offset, event.time_ms, slot.config)
    return finish(bucket, turn, ownership.observed_group(turn, seen), gone=False)


def on_transaction_completed(
    slot: GroupSlot, event: Event, done: TransactionCompleted
) -> list[Decision]:
    """End a producer's transaction in all groups of the partitions that got its marker."""
    found: list[Decision] = []
    for number in sorted(slot.transactional | slot.opened.keys()):
        bucket = slot.bucket(number)
        names = [
            name
            for name in bucket.of_partitions(done.partitions)
            if bucket.entries[name].transactions
        ]
        found.extend(
            each(slot, event, names, lambda turn, group: complete_transaction(turn, group, done))
        )
    return found


def on_group_records_refused(
    slot: GroupSlot, event: Event, refusal: GroupRecordsRefused
) -> list[Decision]:
    """Take back what could not be appended."""
    bucket = slot.bucket(group_bucket(refusal.group))
    if bucket.get(refusal.group) is None:
        turn = Turn(event.offset, event.time_ms, slot.config)
        refusals.refused(turn, None, refusal)
        return described(turn, Group(refusal.group, refusal.partition))

    return concern(
        slot, event, refusal.group, lambda turn, group: refusals.refused(turn, group, refusal)
    )


def on_group_records_overtaken(
    slot: GroupSlot, event: Event, records: GroupRecordsOvertaken
) -> list[Decision]:
    """Note that records were appended late."""
    return concern(
        slot, event, records.group, lambda turn, group: refusals.overtaken(turn, group, records)
    )


GROUP_HANDLERS: Handlers[GroupSlot] = {
    JoinGroupRequested: on_group_request,
    SyncGroupRequested: on_group_request,
    LeaveGroupRequested: on_group_request,
    OffsetCommitRequested: on_group_request,
    TxnOffsetCommitRequested: on_group_request,
    OffsetsAppended: on_offsets_appended,
    CommittedTopicsDeleted: on_committed_topics_deleted,
    OffsetDeleteRequested: on_group_request,
    DeleteGroupRequested: on_group_request,
    GroupObserved: on_group_observed,
    GroupRecordsRefused: on_group_records_refused,
    GroupRecordsOvertaken: on_group_records_overtaken,
    HeartbeatsReceived: on_heartbeats_received,
    GroupTimerDue: on_group_timer_due,
    OffsetsExpirationDue: on_offsets_expiration_due,
    GroupCoordinatorConfigured: on_group_coordinator_configured,
    GroupPartitionsElected: on_group_partitions_elected,
    GroupPartitionsLoaded: on_group_partitions_loaded,
    GroupPartitionsResigned: on_group_partitions_resigned,
    TransactionCompleted: on_transaction_completed,
}
