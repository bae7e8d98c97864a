"""What Kafka's own controller does wrong and ours does not: done to both, one after the other.

The random sequences leave these out, since the two clusters are different ones from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.zk.znodes import DELETE_TOPICS_PATH, partition_state_path, topic_path
from tests.differential.compare import Difference
from tests.differential.run import Run
from tests.differential.servers import Servers
from tests.differential.steps import PREFERRED_ELECTION_PATH, REASSIGNMENT_PATH, Step

_LATE_S = 2.0
"""Where a difference has come, more of it may come soon after; nothing shows that it will not."""


@dataclass(slots=True)
class Sides:
    """Both controllers. differing: where they have differed since an earlier step."""

    run: Run
    differing: set[str] = field(default_factory=set)

    def do(self, name: str, *brings: str, **of: Any) -> dict[str, Difference]:
        """Do a step and return what differs, by where: the places that it brings with it, or none
        but the old ones; whatever else differs may be late.
        """

        def settled(found: list[Difference], waited_s: float) -> bool:
            where = {one.where for one in found}
            return waited_s > _LATE_S and where >= {*brings} if brings else where <= self.differing

        found = {one.where: one for one in self.run.do(Step(name, of), settled)}
        self.differing |= found.keys()
        return found

    def create(self, topic: str, replicas: list[int]) -> None:
        of = {"assignment": [replicas], "topic_id": f"{topic:A<21}w", "unclean": None}
        self.do("create_topic", topic=topic, **of)


@pytest.fixture
def sides(servers: Servers) -> Iterator[Sides]:
    run = Run(0, *servers.places("defects"))
    yield Sides(run)
    run.close()


@pytest.mark.timeout(900)
def test_what_kafkas_controller_does_wrong(sides: Sides) -> None:
    """In this order: the last one leaves Kafka's controller in a loop at its next failover."""
    a_cancellation_does_not_take_the_leader_away(sides)
    a_newer_motion_does_not_take_the_leader_away(sides)
    a_topic_in_motion_is_deleted_when_it_has_arrived(sides)
    a_partition_without_data_moves_at_once(sides)
    an_election_without_data_ends(sides)


def a_cancellation_does_not_take_the_leader_away(sides: Sides) -> None:
    at = partition_state_path("a", 0)
    sides.create("a", [5, 1])
    sides.do("request_reassignment", topic="a", partition=0, target=[3, 4])
    sides.do("alter_isr", topic="a", partition=0, isr=[5, 3], wrong={})
    assert not sides.do("change_brokers", killed=[5])
    found = sides.do("request_reassignment", at, topic="a", partition=0, target=None)
    assert b'"leader":-1' in found[at].stock
    assert b'"leader":3' in found[at].ours
    refused = int(ProtocolError.INVALID_REPLICA_ASSIGNMENT)
    assert (found["answer"].stock, found["answer"].ours) == ((0, [0]), (0, [refused]))


def a_newer_motion_does_not_take_the_leader_away(sides: Sides) -> None:
    at = partition_state_path("e", 0)
    sides.create("e", [1])
    sides.do("request_reassignment", topic="e", partition=0, target=[3, 4])
    sides.do("alter_isr", topic="e", partition=0, isr=[1, 3], wrong={})
    sides.do("elect_preferred", partitions=[("e", 0)])
    found = sides.do("request_reassignment", at, topic="e", partition=0, target=[1, 2])
    assert b'"leader":-1' in found[at].stock
    assert b'"leader":1' in found[at].ours
    assert "answer" not in found


def a_topic_in_motion_is_deleted_when_it_has_arrived(sides: Sides) -> None:
    at = topic_path("b")
    sides.create("b", [1, 2])
    sides.do("reassign", targets={("b", 0): [3, 4]})
    found = sides.do("delete_topic", at, topic="b")
    assert found[at].stock is None
    assert found[at].ours is not None
    arrived = Step("alter_isr", {"topic": "b", "partition": 0, "isr": [1, 2, 3, 4], "wrong": {}})
    arrived.apply(sides.run.ours)
    left = sides.run.ours.settle().keys()
    assert not {at, f"{DELETE_TOPICS_PATH}/b", REASSIGNMENT_PATH} & left
    assert REASSIGNMENT_PATH in sides.run.stock.settle()
    sides.differing.add(REASSIGNMENT_PATH)


def a_partition_without_data_moves_at_once(sides: Sides) -> None:
    topic, state = topic_path("c"), partition_state_path("c", 0)
    sides.create("c", [5])
    found = sides.do("request_reassignment", topic, state, topic="c", partition=0, target=[2])
    assert found[state].stock is None
    assert b'"leader":2' in found[state].ours
    assert b'"removing_replicas":{"0":[5]}' in found[topic].stock
    assert b'"removing_replicas":{}' in found[topic].ours


def an_election_without_data_ends(sides: Sides) -> None:
    sides.create("d", [5])
    at = PREFERRED_ELECTION_PATH
    found = sides.do("elect_preferred", at, partitions=[("d", 0)])
    assert found[at].ours is None
    assert found[at].stock is not None
