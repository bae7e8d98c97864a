"""Becoming and ceasing to be coordinator of partitions, and loading their groups."""

from __future__ import annotations

from state.decisions import Decision
from state.events import Event
from state.groups.buckets import group_bucket
from state.groups.change_bodies import GroupLoaded, LoadedMember
from state.groups.change_kinds import ChangeKind
from state.groups.group import Group
from state.groups.group_turn import Gone, with_group, with_name
from state.groups.member import Member, member_fields
from state.groups.membership import refuse_waiting, touch
from state.groups.offset_rows import rows_values
from state.groups.payloads.ownership import (
    GroupObserved,
    GroupPartitionsElected,
    GroupPartitionsLoaded,
    GroupPartitionsResigned,
    ObservedMember,
    ObservedMetadata,
)
from state.groups.payloads.requests import SyncsCame
from state.groups.rebalance import prepare
from state.groups.slot import GroupSlot, Ownership
from state.groups.states import GroupState
from state.groups.tables import CoordinatorPhase
from state.groups.timers import NOTHING, Known, disarm
from state.groups.turn import Turn
from state.protocol_errors import ProtocolError


def on_group_partitions_elected(
    slot: GroupSlot, event: Event, became: GroupPartitionsElected
) -> list[Decision]:
    """Begin to load partitions; those that are owned already stay so, older epochs are ignored."""
    for partition in became.partitions:
        held = slot.partitions.get(partition)
        if held is None or became.epoch >= held.epoch:
            owned = held is not None and held.phase is CoordinatorPhase.OWNED
            slot.partitions[partition] = Ownership(
                became.epoch, CoordinatorPhase.OWNED if owned else CoordinatorPhase.LOADING
            )
    return []


def on_group_partitions_loaded(
    slot: GroupSlot, event: Event, done: GroupPartitionsLoaded
) -> list[Decision]:
    """Serve partitions whose groups have been observed."""
    for partition in done.partitions:
        if slot.partitions.get(partition) == Ownership(done.epoch, CoordinatorPhase.LOADING):
            slot.partitions[partition] = Ownership(done.epoch, CoordinatorPhase.OWNED)
    return []


def on_group_partitions_resigned(
    slot: GroupSlot, event: Event, ended: GroupPartitionsResigned
) -> list[Decision]:
    """Forget the groups of partitions that another broker coordinates."""

    def act(turn: Turn, group: Group) -> Gone:
        _unload(turn, group)
        return True

    given_up = _resign(slot, ended)
    found: list[Decision] = []
    if given_up:
        for number in slot.numbers():
            bucket = slot.bucket(number)
            for name in bucket.of_partitions(given_up):
                group = bucket.get(name)
                assert group is not None
                known = _everybody_alive(group, event.time_ms) if ended.unheard else NOTHING
                found += with_group(slot, event, name, act, known)
            if not bucket.entries:
                # The clock may have dropped the timer with the role, and no group needs it now.
                bucket.armed_ms = None
    return found


def _everybody_alive(group: Group, now_ms: int) -> Known:
    """Return that all members of a group are alive and have sent SyncGroup."""
    synced = SyncsCame(group.name, group.generation, tuple(group.members))
    return Known(dict.fromkeys(group.members, now_ms), synced)


def _resign(slot: GroupSlot, ended: GroupPartitionsResigned) -> list[int]:
    """Give partitions up and return those whose groups are to be forgotten; older epochs are
    ignored.
    """
    given_up, epoch = [], ended.epoch
    known = slot.partitions if ended.every else ()
    for partition in dict.fromkeys([*ended.partitions, *known]):
        held = slot.partitions.get(partition)
        if ended.unheard:
            # A front begins: the topic may have been made again, and have its first epochs.
            if slot.partitions.pop(partition, None) is not None:
                given_up.append(partition)
        elif held is None:
            if epoch is not None:
                slot.partitions[partition] = Ownership(epoch, CoordinatorPhase.NONE)
        elif epoch is None or epoch >= held.epoch:
            slot.partitions[partition] = Ownership(
                held.epoch if epoch is None else epoch, CoordinatorPhase.NONE
            )
            given_up.append(partition)
    return given_up


def _unload(turn: Turn, group: Group) -> None:
    """Refuse all waiting requests, as another broker coordinates the group."""
    for member in group.members.values():
        refuse_waiting(turn, group, member, ProtocolError.NOT_COORDINATOR, join_id=member.id)
    disarm(group)
    turn.change({"change": ChangeKind.GROUP_REMOVED, "reason": "unloaded"})


def on_group_observed(slot: GroupSlot, event: Event, seen: GroupObserved) -> list[Decision]:
    """Take a group over, while its partition is loading."""
    held = slot.partitions.get(seen.partition)
    bucket = slot.bucket(group_bucket(seen.group))
    if held != (seen.epoch, CoordinatorPhase.LOADING) or seen.group in bucket.entries:
        return []
    return with_name(
        slot, event, seen.group, seen.partition, lambda turn, _: _observed_group(turn, seen)
    )


def _observed_group(turn: Turn, observed: GroupObserved) -> Group:
    """Return a group as it was found, with sessions that begin now; one that is larger than allowed
    rebalances, so that the members who are too many can commit.
    """
    group = Group(observed.group, observed.partition, state_since_ms=turn.now_ms)
    if observed.metadata is not None:
        _take_metadata(group, observed.metadata)
    group.store.rows.update(observed.offsets)
    group.store.pending.update(observed.pending)
    turn.change(loaded_change(group))
    for member in group.members.values():
        touch(turn, group, member)
    if len(group.members) > turn.config.max_size:
        prepare(turn, group, f"more than {turn.config.max_size} members were loaded")
    return group


def _take_metadata(group: Group, metadata: ObservedMetadata) -> None:
    group.state = GroupState.STABLE if metadata.members else GroupState.EMPTY
    group.generation = metadata.generation
    group.protocol = metadata.protocol
    group.leader = metadata.leader
    group.state_since_ms = metadata.state_since_ms
    for one in metadata.members:
        group.add(_member(one, metadata.protocol or ""), metadata.protocol_type)
    group.protocol_type = metadata.protocol_type or None
    group.subscribed = group.topics()


def _member(one: ObservedMember, protocol: str) -> Member:
    return Member(
        one.member,
        one.instance,
        one.client,
        one.host,
        one.session_timeout_ms,
        one.rebalance_timeout_ms,
        ((protocol, one.metadata),),
        one.assignment,
    )


def loaded_change(group: Group) -> GroupLoaded:
    """Return the change that an image takes a whole group from."""
    protocol = group.protocol
    members: list[LoadedMember] = [
        {
            **member_fields(one),
            "metadata": one.metadata_if_any(protocol),
            "assignment": one.assignment,
        }
        for one in group.members.values()
    ]
    return {
        "change": ChangeKind.GROUP_LOADED,
        "state": group.state,
        "metadata": {
            "generation": group.generation,
            "protocol_type": group.protocol_type or "",
            "protocol": protocol,
            "leader": group.leader,
            "state_since_ms": group.state_since_ms,
            "members": members,
        },
        "offsets": rows_values(group.store.rows),
        "pending": [(one, rows_values(rows)) for one, rows in group.store.pending.items()],
    }
