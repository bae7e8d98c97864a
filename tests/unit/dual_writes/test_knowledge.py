"""Where what two know differs."""

from __future__ import annotations

from streaming.dual_writes.knowledge import (
    HIDDEN,
    Fact,
    Known,
    LeftOut,
    Matter,
    Partition,
    Secret,
    Subject,
    Topic,
    differences,
    partition_subject,
    shown,
)

P = Partition(1, 4, (1, 2), (1, 2), (), ())
ALICE = Subject(Matter.CONFIG, "users/alice")
TOKEN = Subject(Matter.DELEGATION_TOKEN, "token")


def knows(
    topics: dict[str, Topic] | None = None, facts: dict[Subject, dict[str, Fact]] | None = None
) -> Known:
    known = Known(topics or {})
    known.facts.update(facts or {})
    return known


def told(
    zookeeper: Known, quorum: Known, left_out: LeftOut | None = None
) -> list[tuple[str, str, object, object]]:
    return [
        (one.subject.name, one.what, one.zookeeper, one.quorum)
        for one in differences(zookeeper, quorum, left_out)
    ]


def test_nothing_differs() -> None:
    one, other = (
        knows({"t": Topic("id", {0: P, 1: None})}, {ALICE: {"rate": 1.0, "s": Secret(b"x")}})
        for _ in range(2)
    )
    one.facts[TOKEN] = {}
    assert (one.partitions, one.others) == (2, 1)
    assert not told(one, other)
    assert not told(other, one)


def test_a_topic_that_only_one_has_is_told_once() -> None:
    one, other = knows({"t": Topic("id", {0: P, 1: P})}), knows()
    assert told(one, other) == [("t", "partitions", 2, None)]
    assert told(other, one) == [("t", "partitions", None, 2)]
    assert not told(other, one, LeftOut(subjects={Subject(Matter.TOPIC, "t")}))
    assert not told(other, one, LeftOut({Matter.TOPIC}))


def test_a_topic_that_was_made_again() -> None:
    assert told(knows({"t": Topic("a")}), knows({"t": Topic("b")})) == [("t", "topic_id", "a", "b")]


def test_partitions() -> None:
    ours = {0: P, 1: P, 2: None, 3: P}
    theirs = {0: P._replace(leader=2, isr=(2,)), 2: P, 3: P, 4: P}
    assert told(knows({"t": Topic("a", ours)}), knows({"t": Topic("a", {**theirs})})) == [
        ("t-0", "isr", (1, 2), (2,)),
        ("t-0", "leader", 1, 2),
        ("t-1", "leader", 1, None),
        ("t-2", "leader", None, 1),
        ("t-4", "leader", None, 1),
    ]
    without = LeftOut(subjects={partition_subject("t", number) for number in (0, 1, 2)})
    found = told(knows({"t": Topic("a", ours)}), knows({"t": Topic("a", {**theirs})}), without)
    assert [name for name, *_ in found] == ["t-4"]


def test_facts() -> None:
    ours = {ALICE: {"rate": 1.0, "only": 2.0, "same": 3.0, "s": Secret(b"x")}}
    theirs = {ALICE: {"rate": 1.5, "same": 3.0, "s": Secret(b"y")}, TOKEN: {"renewers": ("a", "b")}}
    assert told(knows(facts=ours), knows(facts=theirs)) == [
        ("users/alice", "only", 2.0, None),
        ("users/alice", "rate", 1.0, 1.5),
        ("users/alice", "s", Secret(b"x"), Secret(b"y")),
        ("token", "renewers", None, ("a", "b")),
    ]
    without = LeftOut({Matter.DELEGATION_TOKEN}, {ALICE})
    assert not told(knows(facts=ours), knows(facts=theirs), without)


def test_secrets_are_not_shown() -> None:
    assert shown(Secret("s3cret")) == shown(HIDDEN) == "(secret)"
    assert "s3cret" not in repr(Secret("s3cret"))
    assert [shown(one) for one in (None, 1, 1.5, "a", (1, 2))] == [None, 1, 1.5, "a", [1, 2]]
