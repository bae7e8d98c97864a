"""Who expires first: what a group keeps is what looking at all its members would find."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.groups.group import Group
from state.groups.member import NEVER, Member

TIMES = st.integers(0, 6)
NAMES = st.sampled_from("abcde")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), NAMES, TIMES, st.booleans()),
        st.tuples(st.just("set deadline"), NAMES, st.none() | TIMES),
        st.tuples(st.just("begin"), NAMES),
        st.tuples(st.just("drop"), NAMES),
        st.tuples(st.just("rename"), NAMES, NAMES),
        st.tuples(st.just("give out"), NAMES, TIMES),
        st.tuples(st.just("forget"), NAMES),
        st.tuples(st.just("join"), NAMES, st.none() | st.just("r1")),
        st.tuples(st.just("await syncs")),
        st.tuples(st.just("sync"), NAMES),
    ),
    max_size=40,
)


def member(name: str, deadline_ms: int, *, is_new: bool = False) -> Member:
    protocols = (("range", ""),)
    return Member(name, None, "c", "/h", 10, 20, protocols, deadline_ms=deadline_ms, is_new=is_new)


def do(group: Group, step: tuple[Any, ...]) -> None:
    match step:
        case ("add", name, at, is_new) if name not in group.members:
            group.add(member(name, at, is_new=is_new), "consumer")
        case ("set deadline", name, at) if name in group.members:
            group.set_deadline(group.members[name], at)
        case ("begin", name) if name in group.members:
            group.members[name].is_new = False
        case ("drop", name) if name in group.members:
            group.drop(group.members[name])
        case ("rename", name, other) if name in group.members and other not in group.members:
            group.rename(group.members[name], other)
        case ("give out", name, at) if name not in group.pending:
            group.give_out(name, at)
        case ("forget", name):
            group.pending.pop(name, None)
        case ("join", name, request) if name in group.members:
            group.let_join(group.members[name], request)
        case ("await syncs",):
            group.await_syncs()
        case ("sync", name) if name in group.members:
            group.sync_came(group.members[name])


def check(group: Group) -> None:
    members = list(group.members.values())
    mortal = [one for one in members if one.deadline_ms is not None]
    told = [one.deadline_ms for one in mortal if one.is_new] + [*group.pending.values()]
    first = [one.deadline_ms for one in mortal] + told
    assert group.deadlines_ms() == (min(first, default=NEVER), min(told, default=NEVER))
    assert group.deadlines.first_member() is min(
        mortal, key=lambda one: one.deadline_ms or 0, default=None
    )
    assert group.deadlines.first_given() == min(
        group.pending, key=group.pending.__getitem__, default=None
    )
    assert group.joined == sum(one.join_request is not None for one in members)
    assert group.unsynced == sum(one.pending_sync for one in members)


@given(STEPS)
def test_what_is_kept_is_what_all_members_say(steps: list[tuple[Any, ...]]) -> None:
    group = Group("g", 0)
    for step in steps:
        do(group, step)
        check(group)


@given(STEPS, STEPS)
def test_what_is_asked_late_is_the_same(
    before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]
) -> None:
    group = Group("g", 0)
    for step in [*before, *after]:
        do(group, step)
    check(group)


@pytest.mark.parametrize("count", [50, 500])
def test_one_members_news_costs_the_same_in_a_large_group(count: int) -> None:
    group = Group("g", 0)
    for number in range(count):
        group.add(member(f"m{number}", 1_000 + number), "consumer")
    group.deadlines_ms()
    lines = 0

    def count_lines(*_: object) -> Any:
        nonlocal lines
        lines += 1
        return count_lines

    tracer = sys.gettrace()
    sys.settrace(count_lines)
    try:
        group.set_deadline(group.members["m7"], 5_000)
        group.deadlines_ms()
    finally:
        sys.settrace(tracer)
    assert lines < 80
