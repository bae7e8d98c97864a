"""What holds for consumer groups whatever their members do and however the log is cut."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.decisions import DecisionKind
from state.events import Event
from state.groups.buckets import group_bucket
from state.groups.change_kinds import ChangeKind
from state.groups.group import Group
from state.groups.image import GroupImage
from state.groups.states import GroupState
from state.merge import decision_digest_input
from tests.fixtures.folding import fold_log
from tests.logs.group_intents import LOGS, authored, random_intents
from tests.logs.group_logs import Author
from tests.logs.group_parts import GROUPS, LONGEST_WAIT_MS
from tests.unit.state.group_support import image_of

LONG = [authored(random_intents(seed, 400)) for seed in range(2)]


def steps_of(author: Author) -> list[tuple[int, str, dict[str, Any]]]:
    """Return (event offset, group, step) of everything that was decided about groups."""
    return [
        (offset, body["group"], step)
        for offset, kind, body in author.decided
        if kind == DecisionKind.CHANGE_GROUP
        for step in body["steps"]
    ]


def groups_of(author: Author) -> dict[str, Group]:
    slot = author.slot()
    found = {name: slot.bucket(group_bucket(name)).get(name) for name in GROUPS}
    return {name: group for name, group in found.items() if group is not None}


@given(author=LOGS, data=st.data())
def test_batches_restarts_and_slots_change_nothing(author: Author, data: st.DataObject) -> None:
    events = author.events
    cuts = data.draw(st.sets(st.integers(1, len(events))), label="cuts")
    slots = data.draw(st.sampled_from([1, 2, 5, 16]), label="slots")
    states, whole = fold_log(events, 1, (), slots)
    assert fold_log(events, 1, cuts, slots) == (states, whole)
    one = [decision_digest_input(decision) for decision in fold_log(events, 1, (), 1)[1]]
    assert [decision_digest_input(decision) for decision in whole] == one


@pytest.mark.parametrize("author", LONG, ids=["0", "1"])
@pytest.mark.parametrize("slots", [3, 16])
def test_a_long_log_gives_the_same_one_event_a_batch(author: Author, slots: int) -> None:
    events = author.events
    assert len(author.decided) > 300
    states, whole = fold_log(events, 1, (), slots)
    assert fold_log(events, 1, range(1, len(events)), slots) == (states, whole)
    assert not [body for _, kind, body in author.decided if kind == DecisionKind.SET_ASIDE]


@given(author=LOGS)
def test_late_ticks_change_nothing_but_when_it_is_told(author: Author) -> None:
    """Without the clock's events every timer fires before the next event of its group, or at the
    end: what is said is the same, each at its own deadline.
    """
    end = Event(len(author.events), author.now_ms + 100_000, "group_timer_due", "", b"")
    ends = [
        Event(
            end.offset + number,
            end.time_ms,
            end.kind,
            str(group_bucket(group)),
            orjson.dumps({"timer": "", "deadline_ms": 0}),
        )
        for number, group in enumerate(GROUPS)
    ]
    prompt = [*author.events, *ends]
    late = [event for event in author.events if event.kind != "group_timer_due" or event.offset % 3]
    assert told(prompt) == told([*late, *ends])


def told(events: list[Event]) -> dict[tuple[str, str], list[Any]]:
    """Return what was decided about each group in order, by what it is."""
    found: dict[tuple[str, str], list[Any]] = {}
    for decision in fold_log(events, 1, (), 1)[1]:
        if decision.kind == DecisionKind.CHANGE_GROUP:
            body = orjson.loads(decision.body)
            for step in body["steps"]:
                for what in ("changes", "replies", "records"):
                    said = found.setdefault((body["group"], what), [])
                    said.extend(map(without_after, step.get(what, [])))
    return found


def without_after(said: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in said.items() if key != "after"}


@given(author=LOGS)
def test_one_generation_at_a_time_and_only_upwards(author: Author) -> None:
    generations: dict[str, int] = {}
    for _, group, step in steps_of(author):
        for change in step["changes"]:
            match change["change"]:
                case ChangeKind.GROUP_CREATED:
                    generations[group] = 0
                case ChangeKind.GROUP_LOADED:
                    generations[group] = change["metadata"]["generation"]
                case ChangeKind.GENERATION_STARTED | ChangeKind.GROUP_EMPTIED:
                    assert change["generation"] == generations[group] + 1
                    generations[group] += 1
                case ChangeKind.ASSIGNMENT_DISTRIBUTED:
                    assert change["generation"] == generations[group]


@given(author=LOGS)
def test_an_assignment_reaches_only_members_of_its_generation(author: Author) -> None:
    generations: dict[str, int] = {}
    members: dict[str, set[str]] = {group: set() for group in GROUPS}
    assigned: dict[str, dict[str, str]] = {group: {} for group in GROUPS}
    for _, group, step in steps_of(author):
        for change in step["changes"]:
            match change["change"]:
                case ChangeKind.GROUP_EMPTIED:
                    generations[group] = change["generation"]
                case ChangeKind.GENERATION_STARTED:
                    generations[group] = change["generation"]
                    members[group] = {row[0] for row in change["members"]}
                    assigned[group] = {}
                case ChangeKind.GROUP_LOADED:
                    generations[group] = change["metadata"]["generation"]
                    rows = change["metadata"]["members"]
                    assigned[group] = {row["member"]: row["assignment"] for row in rows}
                    members[group] = set(assigned[group])
                case ChangeKind.MEMBER_REPLACED:
                    old, new = change["member"], change["new_member"]
                    members[group] = {new if one == old else one for one in members[group]}
                    assigned[group][new] = assigned[group].pop(old, "")
                case ChangeKind.ASSIGNMENT_DISTRIBUTED:
                    assigned[group] = dict(change["assignments"])
                    assert set(assigned[group]) <= members[group]
        for reply in step["replies"]:
            if reply["api"] == "sync_group" and reply["error"] == 0:
                _, request = author.requests[reply["request_id"]]
                assert request["generation"] == generations[group]
                assert request["member"] in members[group]
                assert reply["assignment"] == assigned[group].get(request["member"], "")


@given(author=LOGS)
def test_every_request_is_answered_once_or_waits(author: Author) -> None:
    answered = Counter(
        reply["request_id"] for _, _, step in steps_of(author) for reply in step["replies"]
    )
    refused = Counter(
        reply["request_id"]
        for event in author.events
        if event.kind == "group_records_refused"
        for reply in orjson.loads(event.payload)["replies"]
    )
    waiting = Counter(
        request
        for group in groups_of(author).values()
        for member in group.members.values()
        for request in (member.join_request, member.sync_request)
        if request is not None
    )
    assert answered - refused + waiting == Counter(author.requests.keys())


def waiting_of(author: Author) -> set[str]:
    """Return the ids of the requests whose members wait for an answer."""
    members = (one for group in groups_of(author).values() for one in group.members.values())
    asked = {request for one in members for request in (one.join_request, one.sync_request)}
    return {request for request in asked if request is not None}


@given(author=LOGS, group=st.integers(0, 2), chance=st.integers(0, 63))
def test_no_member_waits_past_its_deadline(author: Author, group: int, chance: int) -> None:
    """Whoever waits is waited for by a timer, is answered when the longest wait is over, and after
    the clock no timer is due.
    """
    author.settle(group, 6, chance)  # the SyncGroup of one member does not come
    waiting = waiting_of(author)
    for one in groups_of(author).values():
        if any(member.join_request or member.sync_request for member in one.members.values()):
            assert one.next_deadline_ms <= author.now_ms + LONGEST_WAIT_MS
            assert one.state in (GroupState.PREPARING, GroupState.COMPLETING)
            timer = one.join_timer
            armed = one.sync_deadline_ms if timer is None else timer.deadline_ms
            assert armed is not None
    author.now_ms += LONGEST_WAIT_MS + 1
    author.tick()
    author.tick()
    assert waiting.isdisjoint(waiting_of(author))
    due = [one for one in groups_of(author).values() if one.next_deadline_ms <= author.now_ms]
    assert due == []


@given(author=LOGS)
def test_no_committed_offset_goes_back(author: Author) -> None:
    """A stored offset is replaced only by one that was stored later, in machine and image alike."""
    image = GroupImage()
    stored: dict[tuple[str, str, int], int] = {}
    refused = {
        tuple(orjson.loads(event.payload)["write"])
        for event in author.events
        if event.kind == "group_records_refused"
    }
    for offset, kind, body in author.decided:
        if kind != DecisionKind.CHANGE_GROUP:
            continue
        decided = image.begin(offset, body)
        for write in decided.writes:
            if write in refused:
                image.refused(write, body["partition"], 3)
            else:
                image.appended(write)
        view = image.groups.get(body["group"])
        if view is None or any(
            change["change"] in ("group_loaded", "group_created", "offsets_removed")
            for step in body["steps"]
            for change in step["changes"]
        ):
            stored = {key: held for key, held in stored.items() if key[0] != body["group"]}
        for (topic, number), row in (view.offsets if view is not None else {}).items():
            key = (body["group"], topic, number)
            assert row.position >= stored.get(key, -(1 << 62))
            stored[key] = row.position
    for name, group in groups_of(author).items():
        assert dict(group.store.rows) == image.groups[name].offsets
        assert dict(group.store.pending) == image.groups[name].pending


def assert_like_machines(author: Author, *fields: str) -> None:
    """The image has the machines' groups, with the same members and the same in these fields."""
    restored = image_of(author.slot())
    assert restored.groups.keys() == author.image.groups.keys()
    for name, view in author.image.groups.items():
        other = restored.groups[name]
        for field in ("generation", "protocol_type", "protocol", "instances", *fields):
            assert getattr(view, field) == getattr(other, field), field
        assert list(view.members) == list(other.members)
        if GroupState.STABLE is view.state is other.state:
            assert view.members == other.members
            assert view.leader == other.leader


@given(author=LOGS)
def test_the_image_is_what_the_machines_say(author: Author) -> None:
    """Folded from decisions or taken from the machines, the image is the same; while writes are on
    their way, but for what they change.
    """
    assert_like_machines(author)
    author.release_all()
    assert_like_machines(author, "state", "offsets", "pending")


@given(author=LOGS)
def test_a_write_changes_only_what_may_come_late(author: Author) -> None:
    """What is decided after it may be true before it."""
    late = {"assignment_distributed", "offsets_committed", "transaction_pending"}
    for _, _, step in steps_of(author):
        if "records" in step:
            assert {change["change"] for change in step["changes"]} <= late
