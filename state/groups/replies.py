"""The bodies of replies to JoinGroup and SyncGroup."""

from __future__ import annotations

from typing import Any, Protocol

from state.groups.group import Group
from state.groups.member import Member
from state.groups.tables import GroupApi
from state.groups.turn import Step, Turn
from state.protocol_errors import ProtocolError

NO_GENERATION = -1


class ProtocolView(Protocol):
    """What the members of a generation agreed on: a group or its image."""

    @property
    def protocol_type(self) -> str | None:
        """The group's protocol type."""

    @property
    def protocol(self) -> str | None:
        """The generation's protocol."""


def refuse_join(turn: Turn, request_id: str, error: ProtocolError, member: str = "") -> None:
    """Answer a JoinGroup with an error; member: the id the client is to go on with."""
    turn.reply(request_id, GroupApi.JOIN_GROUP, error, **join_fields(member))


def join_fields(member: str) -> dict[str, Any]:
    """Return the fields of a JoinGroup reply that names no generation."""
    return {
        "member": member,
        "generation": NO_GENERATION,
        "protocol_type": None,
        "protocol": None,
        "leader": None,
        "skip_assignment": False,
        "members": [],
    }


def generation_fields(
    group: Group, member: Member, *, leader: str | None, everyone: bool, skip_assignment: bool
) -> dict[str, Any]:
    """Return the fields of a JoinGroup reply about the present generation.

    leader: the id named as leader. everyone: with the members' metadata, as leaders need it.
    """
    return {
        "member": member.id,
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "leader": leader,
        "skip_assignment": skip_assignment,
        "members": metadata_rows(group) if everyone else [],
    }


def metadata_rows(group: Group) -> list[tuple[str, str | None, str]]:
    """Return (member, instance, metadata under the group's protocol) of each member."""
    assert group.protocol is not None
    protocol = group.protocol
    return [(one.id, one.instance, one.metadata(protocol)) for one in group.members.values()]


def refuse_sync(turn: Turn, request_id: str, error: ProtocolError) -> None:
    """Answer a SyncGroup with an error."""
    turn.reply(request_id, GroupApi.SYNC_GROUP, error, **sync_fields())


def sync_fields() -> dict[str, Any]:
    """Return the fields of a SyncGroup reply without assignment."""
    return {"protocol_type": None, "protocol": None, "assignment": ""}


def assignment_fields(group: ProtocolView, assignment: str) -> dict[str, Any]:
    """Return the fields of a SyncGroup reply with a member's assignment."""
    return {
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "assignment": assignment,
    }


def give_assignment(step: Step | Turn, group: Group, member: Member, request_id: str) -> None:
    """Answer a SyncGroup with the member's assignment.

    It is what `assigned_by` wrote, which may not have been appended yet.
    """
    fields = assignment_fields(group, member.assignment)
    if isinstance(step, Turn) and group.assigned_by is not None:
        fields["after"] = list(group.assigned_by)
    step.reply(request_id, GroupApi.SYNC_GROUP, ProtocolError.NONE, **fields)
