"""The comparison of two controllers finds every kind of difference, and lets pass what is meant."""

from __future__ import annotations

import orjson
import pytest

from tests.differential.compare import Look, Node, differences, nodes
from tests.differential.known import KNOWN, sorted_out
from tests.differential.steps import REASSIGNMENT_PATH
from tests.differential.told import State, Told
from tests.unit.differential.table import first_column

TOPIC, STATE = "/brokers/topics/t", "/brokers/topics/t/partitions/0/state"


def state(version: int = 3, epoch: int = 2, **changed: object) -> dict[str, Node]:
    body = {
        "controller_epoch": 5,
        "leader": 1,
        "version": 1,
        "leader_epoch": epoch,
        "isr": [1, 2],
        **changed,
    }
    return nodes({STATE: (orjson.dumps(body), version)}, 5, set())


def found(before: Look, now: Look) -> list[str]:
    return [one.where for one in differences(before, now)]


BEFORE = Look(state(), state(version=1, epoch=0))


def test_what_is_the_same_is_no_difference() -> None:
    assert not found(BEFORE, Look(state(5, 4), state(3, 2)))


def test_fewer_writes_than_kafka_made_are_no_difference() -> None:
    assert not found(BEFORE, Look(state(6, 4), state(2, 1)))


@pytest.mark.parametrize(
    ("version", "epoch", "where"),
    [
        (1, 1, f"{STATE}, rise of the version"),
        (4, 1, f"{STATE}, rise of the version"),
        (2, 0, f"{STATE}, rise of the leader epoch"),
        (2, 3, f"{STATE}, rise of the leader epoch"),
    ],
)
def test_no_write_and_more_writes_are_differences(version: int, epoch: int, where: str) -> None:
    assert found(BEFORE, Look(state(5, 4), state(version, epoch))) == [where]


def test_a_write_that_kafka_does_not_make_is_a_difference() -> None:
    assert found(BEFORE, Look(state(), state(2, 0))) == [f"{STATE}, rise of the version"]


@pytest.mark.parametrize(
    "changed",
    [{"isr": [2, 1]}, {"leader": 2}, {"controller_epoch": 6}, {"leader_recovery_state": 1}],
)
def test_another_state_is_a_difference(changed: dict[str, object]) -> None:
    now = Look(state(4, 3), state(2, 1, **changed))
    assert found(BEFORE, now) == [STATE]


def test_a_znode_that_one_side_has_not_is_a_difference() -> None:
    assert found(BEFORE, Look(state(), {})) == [STATE]
    assert found(BEFORE, Look({}, state())) == [STATE]


def test_the_order_of_partitions_in_a_topic_is_compared() -> None:
    one = {TOPIC: (b'{"partitions":{"0":[1],"1":[2]},"version":3}', 0)}
    other = {TOPIC: (b'{"partitions":{"1":[2],"0":[1]},"version":3}', 0)}
    now = Look(nodes(one, 1, set()), nodes(other, 1, set()))
    assert found(Look({}, {}), now) == [TOPIC]


def test_only_ids_that_a_controller_drew_may_differ() -> None:
    trees = [{TOPIC: (b'{"topic_id":"%s","version":3}' % id_, 0)} for id_ in (b"a", b"b")]
    drawn = Look(*(nodes(tree, 1, set()) for tree in trees))
    given = Look(*(nodes(tree, 1, {"a"}) for tree in trees))
    assert not found(Look({}, {}), drawn)
    assert found(Look({}, {}), given) == [TOPIC]


def told(leader: int = 1, epochs: tuple[int, int] = (2, 3)) -> Told:
    return Told(metadata={("t", 0): State({"leader": leader}, epochs)})


def look(stock: Told, ours: Told) -> Look:
    return Look(state(), state(), {1: stock}, {1: ours})


def test_what_brokers_were_told_is_compared_with_the_znode() -> None:
    same = Look(state(), state())
    assert not found(same, look(told(), told()))
    assert found(same, look(told(), told(leader=2))) == ["broker 1, metadata of t-0"]
    assert found(same, look(told(), told(epochs=(1, 3)))) == ["broker 1, metadata of t-0"]
    assert found(same, look(told(), Told())) == ["broker 1, metadata of t-0"]
    stopped = Told(metadata=told().metadata, stopped={("t", 0): True})
    assert found(same, look(told(), stopped)) == ["broker 1, stopped t-0"]


def test_known_differences_are_narrow() -> None:
    hosted = Told(hosted={("t", 0): State({"leader": -1}, (2, 3))})
    serving = Look(state(), state(), {1: hosted}, {1: Told()})
    same = Look(state(), state())
    unknown, names = sorted_out(differences(same, serving), serving)
    assert [one.where for one in unknown] == ["broker 1, hosted of t-0"]
    assert not names
    mark = {"/admin/delete_topics/t": Node(b"", 0)}
    marked = Look({**state(), **mark}, {**state(), **mark}, {1: hosted}, {1: Told()})
    before = Look({**state(), **mark}, {**state(), **mark})
    unknown, names = sorted_out(differences(before, marked), marked)
    assert not unknown
    assert names == {"LeaderAndIsr about topics that are being deleted"}


def test_a_list_of_reassignments_that_is_not_written_is_known_only_while_it_is_the_same() -> None:
    def listed(version: int, data: bytes = b"[]") -> dict[str, Node]:
        return {REASSIGNMENT_PATH: Node(data, version)}

    before = Look(listed(0), listed(0))
    again, other = Look(listed(2), listed(0)), Look(listed(2), listed(0, b"[1]"))
    assert not sorted_out(differences(before, again), again)[0]
    unknown, _ = sorted_out(differences(before, other), other)
    assert [one.where for one in unknown] == [REASSIGNMENT_PATH]


MARK = {"/admin/delete_topics/t": Node(b"", 0)}


@pytest.mark.parametrize(
    ("mark", "changed", "known"),
    [
        (MARK, {"leader": -1, "isr": [2]}, True),
        ({}, {"leader": -1, "isr": [2]}, False),
        (MARK, {"leader": 1, "isr": [2]}, False),
    ],
)
def test_one_write_more_is_known_of_a_leaderless_partition_in_deletion(
    mark: dict[str, Node], changed: dict[str, object], known: bool
) -> None:
    stock = {**mark, **state(3, 2, **changed)}
    later = {**mark, **state(4, 3, **{**changed, "controller_epoch": 7})}
    unknown, names = sorted_out(differences(Look(stock, stock), now := Look(stock, later)), now)
    wheres = {STATE, f"{STATE}, rise of the version", f"{STATE}, rise of the leader epoch"}
    assert {one.where for one in unknown} == (set() if known else wheres)
    assert bool(names) is known


@pytest.mark.parametrize(
    ("stock_epochs", "our_epochs", "known"),
    [((1, 2), (2, 3), True), ((2, 3), (2, 3), False), ((1, 2), (1, 2), False)],
)
def test_a_state_in_between_is_known_when_ours_is_the_outcome(
    stock_epochs: tuple[int, int], our_epochs: tuple[int, int], known: bool
) -> None:
    stock = Told(hosted={("t", 0): State({"leader": -1, "isr": [1]}, stock_epochs)})
    ours = Told(hosted={("t", 0): State({"leader": 1, "isr": [1, 2]}, our_epochs)})
    now = look(stock, ours)
    unknown, _ = sorted_out(differences(Look(state(), state()), now), now)
    assert bool(unknown) is not known


def test_every_known_difference_is_written_down() -> None:
    assert {name for name, _ in KNOWN} <= first_column()
