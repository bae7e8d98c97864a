"""The comparison of two coordinators finds what differs, and lets pass what is meant."""

from __future__ import annotations

from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.wire.apis import ApiKey
from tests.differential.groups.comparing import comparable, unequal
from tests.differential.groups.known import KNOWN, name_of
from tests.differential.groups.model import Client, Group
from tests.differential.groups.side import Request
from tests.unit.differential.table import first_column

LEADER, TIE, LATER, REMOVED = (name for name, _ in KNOWN)
JOINED = {"error_code": 0, "generation_id": 2, "leader": "a.1", "protocol_name": "range"}
REFUSED = {**JOINED, "error_code": ProtocolError.GROUP_MAX_SIZE_REACHED}
ID_REQUIRED = {**JOINED, "error_code": ProtocolError.MEMBER_ID_REQUIRED}
UNKNOWN = {"error_code": ProtocolError.UNKNOWN_MEMBER_ID}
NEW = {"member_id": "", "group_instance_id": None}


def group(*protocols: list[str], leader: str = "") -> Group:
    clients = [
        Client(f"c{number}", generation=2, protocols=names)
        for number, names in enumerate(protocols)
    ]
    return Group("g", clients, leader=leader)


def joining(version: int = 9, **body: Any) -> Request:
    return Request("c0", ApiKey.JOIN_GROUP, version, {**NEW, **body})


def test_chance_and_order_are_no_difference() -> None:
    drawn = ["a-0f0e0d0c-1111-2222-3333-0a0b0c0d0e0f", "a-ffffffff-1111-2222-3333-0a0b0c0d0e0f"]
    answers = [
        {"throttle_time_ms": number, "members": [{"id": one}, {"id": "b"}][:: 1 - 2 * number]}
        for number, one in enumerate(drawn)
    ]
    assert comparable(answers[0]) == comparable(answers[1])


def test_all_else_is_told_with_its_place() -> None:
    stock, ours = ({"groups": [{"state": state, "id": "g"}]} for state in ("Stable", "Empty"))
    assert list(unequal(stock, ours)) == [("groups 0 state", "Stable", "Empty")]
    assert not list(unequal(stock, stock))


@pytest.mark.parametrize(
    ("stock", "ours"), [([1], [1, 2]), ({"a": 1}, {"a": 1, "b": 2}), (None, {"a": 1}), (0, 1)]
)
def test_what_cannot_be_laid_side_by_side_differs(stock: Any, ours: Any) -> None:
    assert list(unequal(stock, ours)) == [("", stock, ours)]


@pytest.mark.parametrize(("last", "name"), [("gone.1", LEADER), ("a.1", None), ("b.1", None)])
def test_another_leader_is_known_if_the_last_one_is_gone(last: str, name: str | None) -> None:
    ours = {**JOINED, "leader": "b.1"}
    assert name_of(joining(), group(["range"], leader=last), JOINED, ours) == name


@pytest.mark.parametrize(
    ("protocols", "name"),
    [
        ([["range", "other"], ["other", "range"]], TIE),
        ([["range", "other"], ["other", "range"], ["range", "other"]], None),
        ([["range"], ["range", "other"]], None),
    ],
)
def test_another_protocol_is_known_of_as_many_votes(
    protocols: list[list[str]], name: str | None
) -> None:
    ours = {**JOINED, "protocol_name": "other"}
    assert name_of(joining(), group(*protocols), JOINED, ours) == name


@pytest.mark.parametrize(
    ("request_", "stock", "name"),
    [
        (joining(), REFUSED, LATER),
        (joining(3), REFUSED, None),
        (joining(group_instance_id="i"), REFUSED, None),
        (joining(member_id="a.1"), REFUSED, None),
        (joining(), JOINED, None),
        (joining(), None, None),
    ],
)
def test_new_members_hear_later_what_is_wrong(
    request_: Request, stock: Any, name: str | None
) -> None:
    assert name_of(request_, group(["range"]), stock, ID_REQUIRED) == name


@pytest.mark.parametrize(
    ("stock", "ours", "name"),
    [
        (None, UNKNOWN, REMOVED),
        (None, JOINED, None),
        (UNKNOWN, None, None),
        (JOINED, UNKNOWN, None),
    ],
)
def test_a_removed_member_that_waits_hears_so(stock: Any, ours: Any, name: str | None) -> None:
    request = Request("c0", ApiKey.SYNC_GROUP, 5, {})
    assert name_of(request, group(["range"]), stock, ours) == name


def test_what_is_known_is_in_the_table() -> None:
    assert {name for name, _ in KNOWN} <= first_column()
