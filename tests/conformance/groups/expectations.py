"""Checks of the `expect_*` steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from state.groups.config import offsets_retention_ms
from state.groups.group import Group
from state.groups.states import GroupState, can_rebalance, is_legal
from tests.conformance.groups.matching import matches
from tests.conformance.groups.replies import ORDERED
from tests.conformance.groups.story import Story
from tests.conformance.verdict import NotUnderstoodError, only

ABSENT = "absent"


def expect_reply(story: Story, step: dict[str, Any]) -> None:
    """A reply was given by now, with this error and these fields."""
    only(step, {"at_ms", "expect_reply", "error", "fields", "internal_fields"}, "expect_reply")
    _check_reply(
        story,
        step["expect_reply"],
        step.get("error"),
        {**step.get("fields", {}), **step.get("internal_fields", {})},
    )


def _check_reply(
    story: Story, alias: str, error: str | None, fields: Mapping[str, Any]
) -> dict[str, Any] | None:
    reply = story.reply(alias)
    if reply is None:
        story.found.expect(f"reply to {alias}", "given", "pending")
        return None
    if error is not None:
        story.found.expect(f"error of {alias}", error, reply["error"])
        unnamed = {row[2] for row in reply.get("partitions", [])} - {error}
        if unnamed and "partitions" not in fields and reply["error"] == "NONE":
            story.found.expect(f"error of every partition of {alias}", error, sorted(unnamed))
    for name, expected in fields.items():
        if name not in reply:
            raise NotUnderstoodError(f"{alias} has no field {name!r} that could be asserted")
        ordered = (story.requests[alias]["api"], name) in ORDERED
        if not matches(story.bound(expected), reply[name], ordered=ordered):
            story.found.expect(f"{name} of {alias}", story.bound(expected), reply[name])
    return reply


def expect_pending(story: Story, step: dict[str, Any]) -> None:
    """A reply was not given yet."""
    only(step, {"at_ms", "expect_pending"}, "expect_pending")
    alias = step["expect_pending"]
    if story.reply(alias) is not None:
        story.found.expect(f"reply to {alias}", "pending", story.reply(alias))


def expect_one_leader(story: Story, step: dict[str, Any]) -> None:
    """Of several joins exactly one was told that it leads."""
    fields = {"fields", "leader_fields", "other_fields", "error", "at_ms"}
    only(step, {"expect_one_leader", *fields}, "expect_one_leader")
    aliases = step["expect_one_leader"]
    replies = {
        alias: _check_reply(story, alias, step.get("error"), step.get("fields", {}))
        for alias in aliases
    }
    leaders = [alias for alias, one in replies.items() if one and one["leader"] == one["member"]]
    story.found.expect(f"leaders among {aliases}", 1, len(leaders))
    for alias in aliases:
        if replies[alias] is not None:
            rest = step.get("leader_fields" if alias in leaders else "other_fields", {})
            _check_reply(story, alias, None, rest)


def expect_equal(story: Story, step: dict[str, Any]) -> None:
    """Values at several places are the same."""
    only(step, {"at_ms", "expect_equal"}, "expect_equal")
    first, *others = step["expect_equal"]
    for other in others:
        story.found.expect(f"{other} as {first}", story.value(first), story.value(other))


def expect_value(story: Story, step: dict[str, Any]) -> None:
    """A derived value is this."""
    only(step, {"at_ms", "expect_value"}, "expect_value")
    values = step["expect_value"]
    only(values, {"effective_offsets_retention_ms"}, "expect_value")
    minutes = story.config.get("offsets.retention.minutes", 10_080)
    for name, expected in values.items():
        story.found.expect(name, expected, offsets_retention_ms(minutes))


def expect_transition(story: Story, step: dict[str, Any]) -> None:
    """A move between states is legal, or is not."""
    body = step["expect_transition"]
    only(body, {"path", "from", "to", "legal"}, "expect_transition")
    current = _walked(story, body["path"]) if "path" in body else GroupState(body["from"])
    said = is_legal(current, GroupState(body["to"]))
    story.found.expect(f"{current} to {body['to']} is legal", body["legal"], said)


def expect_can_rebalance(story: Story, step: dict[str, Any]) -> None:
    """A rebalance may begin in a state, or may not."""
    body = step["expect_can_rebalance"]
    only(body, {"path", "from", "can"}, "expect_can_rebalance")
    current = _walked(story, body["path"]) if "path" in body else GroupState(body["from"])
    story.found.expect(f"rebalance in {current}", body["can"], can_rebalance(current))


def _walked(story: Story, path: list[str]) -> GroupState:
    current, *rest = [GroupState(one) for one in path]
    for target in rest:
        story.found.expect(f"{current} to {target} is legal", True, is_legal(current, target))
        current = target
    return current


def expect_tombstones(story: Story, step: dict[str, Any]) -> None:
    """Just these tombstones were appended so far."""
    only(step, {"at_ms", "expect_tombstones", "group"}, "expect_tombstones")
    expected = step["expect_tombstones"]
    came = story.world.store.tombstones
    if isinstance(expected, int):
        story.found.expect("tombstones", expected, len(came))
        return
    default = step.get("group") or story.only_group()
    if isinstance(expected, dict) and expected.keys() & {"offsets", "groups", "group_metadata"}:
        only(expected, {"group", "offsets", "groups", "group_metadata"}, "expect_tombstones")
        default = expected.get("group", default)
        groups = expected.get("groups", [default] if expected.get("group_metadata") else [])
        wanted = [(group, None) for group in groups]
        wanted += [_tombstone(one, default) for one in expected.get("offsets", [])]
    else:
        rows = expected if isinstance(expected, list) else [expected]
        wanted = [_tombstone(one, default) for one in rows]
    story.found.expect("tombstones", sorted(map(str, wanted)), sorted(map(str, came)))


def _tombstone(one: Any, default: str) -> tuple[str, tuple[str, int] | None]:
    """Read a tombstone: a group's name, [topic, partition], or an object."""
    if isinstance(one, str):
        return one, None
    if isinstance(one, list):
        *group, topic, partition = one
        return (group[0] if group else default), (topic, partition)
    if len(one) == 1 and isinstance(next(iter(one.values())), dict):
        one = next(iter(one.values()))
    of = (one["topic"], one["partition"]) if "topic" in one else None
    return one.get("group", default), of


def expect_group(story: Story, step: dict[str, Any]) -> None:
    """A group is as asserted, by its machine, and its image says the same."""
    name = step["expect_group"]
    only(step, {"at_ms", "expect_group", *_FACTS, "state"}, "expect_group")
    group, view = story.world.group(name), story.world.image.groups.get(name)
    if "state" in step:
        came = ABSENT if view is None else str(view.state)
        story.found.expect(f"state of {name}", step["state"], came)
    facts = step.keys() & _FACTS.keys()
    if group is None:
        if facts:
            story.found.expect(f"group {name}", "there", ABSENT)
        return
    for fact in sorted(facts):
        came = _FACTS[fact](group)
        expected = story.bound(step[fact])
        if fact == "not_members":
            story.found.expect(f"{fact} of {name}", [], sorted(set(expected) & set(came)))
        elif fact.startswith("every_"):
            story.found.expect(f"{fact} of {name}", {expected}, set(came))
        elif not matches(expected, came):
            story.found.expect(f"{fact} of {name}", expected, came)
    if not story.world.store.held and view is not None:
        same = (view.state, view.generation, view.protocol_type, set(view.members))
        there = (group.state, group.generation, group.protocol_type, set(group.members))
        story.found.expect(f"image of {name}", there, same)


_FACTS: Mapping[str, Callable[[Group], Any]] = {
    "generation": lambda group: group.generation,
    "protocol_type": lambda group: group.protocol_type,
    "protocol": lambda group: group.protocol,
    "leader": lambda group: group.leader,
    "members": lambda group: list(group.members),
    "not_members": lambda group: list(group.members),
    "member_count": lambda group: len(group.members),
    "size": lambda group: len(group.members),
    "static_instances": lambda group: list(group.instances),
    "static_members": lambda group: dict(group.instances),
    "dynamic_members": lambda group: [
        one.id for one in group.members.values() if one.instance is None
    ],
    "pending_members": lambda group: list(group.pending),
    "pending_count": lambda group: len(group.pending),
    "subscribed_topics": lambda group: None if group.subscribed is None else list(group.subscribed),
    "every_session_timeout_ms": lambda group: [
        one.session_timeout_ms for one in group.members.values()
    ],
    "every_rebalance_timeout_ms": lambda group: [
        one.rebalance_timeout_ms for one in group.members.values()
    ],
    "offset_count": lambda group: len(group.store.rows),
    "has_offsets": lambda group: not group.store.is_empty,
}

EXPECTATIONS: Mapping[str, Callable[[Story, dict[str, Any]], None]] = {
    "expect_reply": expect_reply,
    "expect_pending": expect_pending,
    "expect_one_leader": expect_one_leader,
    "expect_equal": expect_equal,
    "expect_value": expect_value,
    "expect_transition": expect_transition,
    "expect_can_rebalance": expect_can_rebalance,
    "expect_tombstones": expect_tombstones,
    "expect_group": expect_group,
}
