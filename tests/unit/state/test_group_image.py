"""What the image keeps of open transactions when offsets go, and of members while records are on
their way.
"""

from __future__ import annotations

import orjson
import pytest

from state.groups.answers import fetch_offsets
from state.groups.image import GroupImage
from state.groups.offset_rows import OffsetRow
from state.groups.tables import CoordinatorPhase
from state.protocol_errors import ProtocolError
from tests.unit.state.group_support import Watched

AT = ("t", 0)
ROW = [*AT, 5, -1, "", 1_000, None, 1]


def image_after(reason: str) -> GroupImage:
    """A group whose committed offset went, while a transaction was about to commit another."""
    steps = [
        {"change": "group_created"},
        {"change": "offsets_committed", "offsets": [ROW]},
        {"change": "transaction_pending", "producer_id": 9, "offsets": [[*AT, 7, *ROW[3:]]]},
        {"change": "offsets_removed", "partitions": [list(AT)], "reason": reason},
    ]
    image = GroupImage()
    body = {"group": "g", "partition": 0, "steps": [{"changes": steps, "replies": []}]}
    image.apply(1, orjson.dumps(body))
    return image


@pytest.mark.parametrize(
    ("reason", "error"),
    [("expired", ProtocolError.UNSTABLE_OFFSET_COMMIT), ("deleted", ProtocolError.NONE)],
)
def test_an_offset_that_expires_leaves_what_a_transaction_commits(
    reason: str, error: ProtocolError
) -> None:
    """GroupMetadata.removeExpiredOffsets, removeOffsets."""
    _, (found,) = fetch_offsets(
        image_after(reason), CoordinatorPhase.OWNED, "g", [AT], require_stable=True
    )
    assert (found.error, found.offset) == (error, -1)


class Underway:
    """A commit that is being appended, and how often it was asked for its partitions."""

    def __init__(self, layout: int) -> None:
        self.layout = layout
        self.asked = 0

    @property
    def partitions(self) -> list[tuple[str, int]]:
        self.asked += 1
        return [AT, (f"of {self.layout}", 0)]

    def rows(self) -> dict[tuple[str, int], OffsetRow]:
        return {}


def test_what_is_unstable_is_gathered_once_however_many_partitions_are_asked_for() -> None:
    image = image_after("deleted")
    commits = [Underway(layout) for layout in (1, 1, 2)]
    for one in commits:
        image.commit_begun("g", one)
    asked = [AT, *(("other", number) for number in range(100))]
    _, found = fetch_offsets(image, CoordinatorPhase.OWNED, "g", asked, require_stable=True)
    unstable = [one.error is ProtocolError.UNSTABLE_OFFSET_COMMIT for one in found]
    assert unstable == [True] + [False] * 100
    assert sum(one.asked for one in commits) == 2


def new_id(request_id: str) -> str:
    """Return the id that was made for a JoinGroup without one."""
    return f"member-{request_id.removeprefix('r')}"


def test_a_static_member_has_its_new_id_before_the_record_of_it_is_appended() -> None:
    """A generation that starts meanwhile is one of the new id, and of the one after it."""
    coordinator = Watched(**{"group.initial.rebalance.delay.ms": 0})
    image = coordinator.image
    coordinator.tick(1)
    first = new_id(coordinator.join("g", instance="i"))
    coordinator.tick(2)
    coordinator.sync("g", first, 1, [[first, "AAAA"]], instance="i")
    coordinator.end_writes()

    second = new_id(coordinator.join("g", instance="i"))
    assert list(image.groups["g"].members) == [second]
    other = new_id(coordinator.join("g", version=3))
    third = new_id(coordinator.join("g", instance="i"))
    assert image.groups["g"].generation == 2
    assert list(image.groups["g"].members) == [third, other]
    assert len(image.in_flight) == 1
    coordinator.end_writes()
    assert list(image.groups["g"].members) == [third, other]
    assert image.groups["g"].instances == {"i": third}


def test_an_assignment_reaches_a_static_member_that_came_back_before_it_was_appended() -> None:
    coordinator = Watched(**{"group.initial.rebalance.delay.ms": 0})
    coordinator.tick(1)
    first = new_id(coordinator.join("g", instance="i"))
    coordinator.tick(2)
    coordinator.sync("g", first, 1, [[first, "AAAA"]], instance="i")
    second = new_id(coordinator.join("g", instance="i"))
    third = new_id(coordinator.join("g", instance="i"))
    assert first != second != third
    coordinator.end_writes()
    (member,) = coordinator.image.groups["g"].members.items()
    assert (member[0], member[1].assignment) == (third, "AAAA")
