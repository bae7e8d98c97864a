"""Answers from the image: to requests that only read, and to heartbeats.

The rules are Kafka's GroupCoordinator and GroupMetadataManager; the gateway and whoever else reads
use these, and the machines use the same tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass

from state.groups.image import GroupImage
from state.groups.image_changes import GroupView
from state.groups.offsets import commit_error
from state.groups.payloads.offsets import OffsetCommitRequested
from state.groups.payloads.requests import Heartbeat
from state.groups.presence import heartbeat_answer
from state.groups.states import GroupState
from state.groups.tables import CoordinatorPhase, GroupApi, status_error
from state.protocol_errors import ProtocolError
from state.topic_partition import TopicPartition

NO_OFFSET = -1
CLASSIC = "classic"
"""The only type of group there is here (KIP-848 has others)."""


def heartbeat_error(image: GroupImage, phase: CoordinatorPhase, heard: Heartbeat) -> ProtocolError:
    """Return what a Heartbeat is answered with; phase: what we are for the group's partition."""
    error = status_error(GroupApi.HEARTBEAT, heard.group, phase)
    if error is not None:
        return error
    view = image.groups.get(heard.group)
    return ProtocolError.UNKNOWN_MEMBER_ID if view is None else heartbeat_answer(view, heard)


def may_commit(image: GroupImage, phase: CoordinatorPhase, request: OffsetCommitRequested) -> bool:
    """Return whether a commit is taken as far as the image knows: its members know no more."""
    if status_error(GroupApi.OFFSET_COMMIT, request.group, phase) is not None:
        return False
    view = image.groups.get(request.group)
    return view is not None and commit_error(view, request) is None


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member in a DescribeGroups response; bytes are base64."""

    member: str
    instance: str | None
    client: str
    host: str
    metadata: str
    assignment: str


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group in a DescribeGroups response."""

    error: ProtocolError
    group: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[DescribedMember, ...]


def describe_group(image: GroupImage, phase: CoordinatorPhase, group: str) -> DescribedGroup:
    """Return the description of a group; one that is not there is Dead. Protocol, metadata and
    assignments are those of stable groups only.
    """
    error = status_error(GroupApi.DESCRIBE_GROUPS, group, phase)
    if error is not None:
        return DescribedGroup(error, group, "", "", "", ())
    view = image.groups.get(group)
    if view is None:
        return DescribedGroup(ProtocolError.NONE, group, GroupState.DEAD, "", "", ())
    stable = view.state is GroupState.STABLE
    members = tuple(
        DescribedMember(
            member,
            held.instance,
            held.client,
            held.host,
            held.metadata if stable else "",
            held.assignment if stable else "",
        )
        for member, held in view.members.items()
    )
    protocol = (view.protocol or "") if stable else ""
    return DescribedGroup(
        ProtocolError.NONE, group, view.state, view.protocol_type or "", protocol, members
    )


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in a ListGroups response."""

    group: str
    protocol_type: str
    state: str


def list_groups(
    image: GroupImage,
    phases: Iterable[CoordinatorPhase],
    states: Collection[str] = (),
    types: Collection[str] = (),
) -> tuple[ProtocolError, list[ListedGroup]]:
    """Return all groups in one of the states and of one of the types, whatever their case; no
    filter lets all through. While a partition loads the list comes with
    COORDINATOR_LOAD_IN_PROGRESS.
    """
    loading = any(phase is CoordinatorPhase.LOADING for phase in phases)
    error = ProtocolError.COORDINATOR_LOAD_IN_PROGRESS if loading else ProtocolError.NONE
    if types and CLASSIC not in {one.lower() for one in types}:
        return error, []
    wanted = {one.lower() for one in states}
    found = [
        ListedGroup(name, view.protocol_type or "", view.state)
        for name, view in image.groups.items()
        if not wanted or view.state.lower() in wanted
    ]
    return error, found


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """A partition in an OffsetFetch response; offset -1: none."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    error: ProtocolError


def fetch_offsets(
    image: GroupImage,
    phase: CoordinatorPhase,
    group: str,
    partitions: Iterable[TopicPartition] | None,
    *,
    require_stable: bool,
) -> tuple[ProtocolError, list[FetchedOffset]]:
    """Return the group's error and its offsets; partitions: None for all that are committed.

    require_stable: a partition with a commit on its way is UNSTABLE_OFFSET_COMMIT (KIP-447).
    """
    error = status_error(GroupApi.OFFSET_FETCH, group, phase)
    if error is not None:
        return error, []
    view = image.groups.get(group)
    alive = view is not None and view.state is not GroupState.DEAD
    if partitions is None:
        partitions = list(view.offsets) if view is not None and alive else []
    unstable = image.unstable(group) if require_stable else set()
    living = view if alive else None
    return ProtocolError.NONE, [_fetched(living, one, unstable) for one in partitions]


def _fetched(
    view: GroupView | None, partition: TopicPartition, unstable: Set[TopicPartition]
) -> FetchedOffset:
    if view is None:
        return FetchedOffset(*partition, NO_OFFSET, -1, "", ProtocolError.NONE)
    if partition in unstable:
        return FetchedOffset(*partition, NO_OFFSET, -1, "", ProtocolError.UNSTABLE_OFFSET_COMMIT)
    row = view.offsets.get(partition)
    if row is None:
        return FetchedOffset(*partition, NO_OFFSET, -1, "", ProtocolError.NONE)
    return FetchedOffset(*partition, row.offset, row.leader_epoch, row.metadata, ProtocolError.NONE)
