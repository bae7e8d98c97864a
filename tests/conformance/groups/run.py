"""Runs the steps of a group scenario."""

from __future__ import annotations

from typing import Any

from state.groups.config import CONFIG_KEYS, offsets_retention_ms
from state.protocol_errors import ProtocolError
from tests.conformance.groups.environment import act, load_log, unload_log
from tests.conformance.groups.expectations import EXPECTATIONS
from tests.conformance.groups.sends import expand, send
from tests.conformance.groups.story import Story
from tests.conformance.verdict import Findings, NotUnderstoodError, SkippedError, only

KNOWN_NEEDS = {
    "static", "group_max_size", "put_group", "state_machine", "storage_hold", "storage_error",
    "storage_gone", "load_log", "unload_log", "txn", "txn_verification", "offset_delete",
    "sync_protocol_check", "ownership", "loading", "expiration", "tombstones", "list_groups",
}  # fmt: skip
NOT_DECIDED_BY = {"offsets.load.buffer.size", "offsets.retention.check.interval.ms"}
"""Configuration that no decision depends on."""
ONLY_OLD = "asserts what Kafka 1.1 does; 3.9 is the behaviour to have"


def run_steps(body: dict[str, Any]) -> Findings:
    """Run a scenario and return what was found.

    Raises SkippedError, NotUnderstoodError.
    """
    if "3.9" not in body.get("applies_to", ["3.9"]):
        raise SkippedError(ONLY_OLD)
    unknown = sorted({*body.get("needs", [])} - KNOWN_NEEDS)
    if unknown:
        raise SkippedError(f"needs {', '.join(unknown)}, which the runner cannot provide")
    story = Story(body.get("config", {}))
    _configure(story)
    for step in body["steps"]:
        _take(story, step)
    return story.found


def _configure(story: Story) -> None:
    config = dict(story.config)
    minutes = config.pop("offsets.retention.minutes", None)
    if minutes is not None:
        config["offsets.retention.ms"] = offsets_retention_ms(minutes)
    only(config, {*CONFIG_KEYS, *NOT_DECIDED_BY}, "config")
    story.world.happen("group_coordinator_configured", "", {"config": config})


def _take(story: Story, step: dict[str, Any]) -> None:
    """Move the clock to the step's time and do what it says."""
    world = story.world
    if "at_ms" in step:
        world.advance(step["at_ms"])
    verb = next((name for name in step if name in EXPECTATIONS), None)
    if verb is not None:
        EXPECTATIONS[verb](story, step)
    elif "send" in step:
        only(step, {"at_ms", "send", "as"}, "send")
        body = expand(story.bound(step["send"]))
        story.requests[step["as"]] = body
        send(world, step["as"], body, story.verification)
    elif "bind" in step:
        only(step, {"at_ms", "bind", "from"}, "bind")
        story.names[step["bind"]] = story.value(step["from"])
    elif step.get("env") == "txn_verification":
        only(step, {"at_ms", "env", "error"}, "txn_verification")
        story.verification = _error(step.get("error"))
    elif "env" in step:
        act(world, story.bound(step))
    elif "load_log" in step:
        load_log(world, step)
    elif "unload_log" in step:
        unload_log(world, step)
    elif not _storage(story, step) and "advance" not in step:
        raise NotUnderstoodError(f"step with {sorted(step)}")


def _storage(story: Story, step: dict[str, Any]) -> bool:
    """Carry out a step about the store; return whether it was one."""
    world, store = story.world, story.world.store
    if "storage_error" in step:
        only(step, {"at_ms", "storage_error", "error", "count"}, "storage_error")
        said = step["storage_error"]
        store.error = _error(step.get("error") if said is True else said)
        store.errors_left = step.get("count")
    elif "storage_gone" in step:
        only(step, {"at_ms", "storage_gone"}, "storage_gone")
        store.gone = bool(step["storage_gone"])
    elif "storage_hold" in step:
        only(step, {"at_ms", "storage_hold"}, "storage_hold")
        store.holds = bool(step["storage_hold"])
    elif "storage_release" in step:
        only(step, {"at_ms", "storage_release", "error", "log_offset"}, "storage_release")
        world.released(step["storage_release"], _error(step.get("error")), step.get("log_offset"))
    else:
        return False
    return True


def _error(name: str | bool | None) -> ProtocolError:
    if not name:
        return ProtocolError.NONE
    if name not in ProtocolError.__members__:
        raise NotUnderstoodError(f"error {name!r}")
    return ProtocolError[str(name)]
