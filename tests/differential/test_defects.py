"""What Kafka's own controller does wrong and ours does not: done to both, one after the other.

The random sequences leave these out, since the two clusters are different ones from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.zk.znodes import DELETE_TOPICS_PATH, partition_state_path, topic_path
from tests.differential.compare import Difference
from tests.differential.run import Run
from tests.differential.servers import Servers
from tests.differential.steps import PREFERRED_ELECTION_PATH, REASSIGNMENT_PATH, Step

PATIENCE_S = 2.0
"""What is looked for does differ: it is waited for at each of them."""


@pytest.fixture
def run(servers: Servers) -> Iterator[Run]:
    run = Run(0, *servers.places("defects"), patience_s=PATIENCE_S)
    yield run
    run.close()


def do(run: Run, name: str, **of: Any) -> dict[str, Difference]:
    """Do a step and return what differs, by where."""
    return {one.where: one for one in run.do(Step(name, of))}


def create(run: Run, topic: str, replicas: list[int]) -> None:
    of = {"assignment": [replicas], "topic_id": f"{topic:A<21}w", "unclean": None}
    do(run, "create_topic", topic=topic, **of)


@pytest.mark.timeout(900)
def test_what_kafkas_controller_does_wrong(run: Run) -> None:
    """In this order: the last one leaves Kafka's controller in a loop at its next failover."""
    a_cancellation_does_not_take_the_leader_away(run)
    a_newer_motion_does_not_take_the_leader_away(run)
    a_topic_in_motion_is_deleted_when_it_has_arrived(run)
    a_partition_without_data_moves_at_once(run)
    an_election_without_data_ends(run)


def a_cancellation_does_not_take_the_leader_away(run: Run) -> None:
    create(run, "a", [5, 1])
    do(run, "request_reassignment", topic="a", partition=0, target=[3, 4])
    do(run, "alter_isr", topic="a", partition=0, isr=[5, 3], wrong={})
    assert not do(run, "change_brokers", killed=[5])
    found = do(run, "request_reassignment", topic="a", partition=0, target=None)
    state = found[partition_state_path("a", 0)]
    assert b'"leader":-1' in state.stock
    assert b'"leader":3' in state.ours
    refused = int(ProtocolError.INVALID_REPLICA_ASSIGNMENT)
    assert (found["answer"].stock, found["answer"].ours) == ((0, [0]), (0, [refused]))


def a_newer_motion_does_not_take_the_leader_away(run: Run) -> None:
    create(run, "e", [1])
    do(run, "request_reassignment", topic="e", partition=0, target=[3, 4])
    do(run, "alter_isr", topic="e", partition=0, isr=[1, 3], wrong={})
    do(run, "elect_preferred", partitions=[("e", 0)])
    found = do(run, "request_reassignment", topic="e", partition=0, target=[1, 2])
    state = found[partition_state_path("e", 0)]
    assert b'"leader":-1' in state.stock
    assert b'"leader":1' in state.ours
    assert "answer" not in found


def a_topic_in_motion_is_deleted_when_it_has_arrived(run: Run) -> None:
    create(run, "b", [1, 2])
    do(run, "reassign", targets={("b", 0): [3, 4]})
    found = do(run, "delete_topic", topic="b")
    assert found[topic_path("b")].stock is None
    assert found[topic_path("b")].ours is not None
    arrived = Step("alter_isr", {"topic": "b", "partition": 0, "isr": [1, 2, 3, 4], "wrong": {}})
    arrived.apply(run.ours)
    left = run.ours.settle().keys()
    assert not {topic_path("b"), f"{DELETE_TOPICS_PATH}/b", REASSIGNMENT_PATH} & left
    assert REASSIGNMENT_PATH in run.stock.settle()


def a_partition_without_data_moves_at_once(run: Run) -> None:
    create(run, "c", [5])
    found = do(run, "request_reassignment", topic="c", partition=0, target=[2])
    state = found[partition_state_path("c", 0)]
    assert state.stock is None
    assert b'"leader":2' in state.ours
    assert b'"removing_replicas":{"0":[5]}' in found[topic_path("c")].stock
    assert b'"removing_replicas":{}' in found[topic_path("c")].ours


def an_election_without_data_ends(run: Run) -> None:
    create(run, "d", [5])
    found = do(run, "elect_preferred", partitions=[("d", 0)])
    assert found[PREFERRED_ELECTION_PATH].ours is None
    assert found[PREFERRED_ELECTION_PATH].stock is not None
