"""Looks at a quorum and ZooKeeper, until what differs has differed for a while."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from streaming.dual_writes.knowledge import Known, Matter, Subject, Topic
from streaming.dual_writes.quorum import MigrationState
from streaming.dual_writes.run import Found, Quorum, read_quorum, settled
from streaming.dual_writes.znodes import ZooKeeperKnowledge
from streaming.metadata_log.reading import UnreadableMetadataLog
from streaming.metadata_log.records import Record, RecordType
from tests.unit.metadata_log.metadata_records import batch, change, partition, topic, values, write

RATE = Subject(Matter.CONFIG, "users/alice")
SETTLE_S = 7.0


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited between looks."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


def known(rate: float) -> Known:
    found = Known()
    found.facts[RATE]["rate"] = rate
    return found


def look(
    quorum: Sequence[float],
    zookeeper: Sequence[float],
    state: MigrationState = MigrationState.MIGRATION,
) -> Found:
    """What is found when the two have these values look by look, the last for good."""
    theirs, ours = iter(quorum), iter(zookeeper)
    return settled(
        lambda: Quorum(known(next(theirs, quorum[-1])), state, 42),
        lambda: ZooKeeperKnowledge(known(next(ours, zookeeper[-1])), gaps=["/unread"]),
        SETTLE_S,
    )


def values_found(found: Found) -> list[tuple[object, object]]:
    return [(one.zookeeper, one.quorum) for one in found.differences]


def test_what_agrees_at_once_takes_one_look(waited: list[float]) -> None:
    found = look([1], [1])
    assert (found.offset, found.others, found.gaps) == (42, 1, ["/unread"])
    assert not values_found(found)
    assert not waited


def test_what_zookeeper_hears_of_later_does_not_count(waited: list[float]) -> None:
    assert not values_found(look([2], [1, 2]))
    assert waited == [SETTLE_S]


@pytest.mark.parametrize("zookeeper", [[1], [1, 3]])
def test_what_stays_otherwise_counts(waited: list[float], zookeeper: list[float]) -> None:
    found = look([2], zookeeper)
    assert values_found(found) == [(zookeeper[-1], 2)]
    assert found.gaps == ["/unread"]
    assert waited == [SETTLE_S]


def test_what_the_quorum_has_just_changed_is_looked_at_again(waited: list[float]) -> None:
    assert values_found(look([2, 3, 3], [1])) == [(1, 3)]
    assert len(waited) == 2


def test_what_changes_with_each_look_is_a_gap(waited: list[float]) -> None:
    found = look(range(2, 20), [1])
    assert not values_found(found)
    assert found.gaps == ["/unread", "1 things changed from each look to the next"]


@pytest.mark.parametrize(
    "state", [MigrationState.NONE, MigrationState.PRE_MIGRATION, MigrationState.POST_MIGRATION]
)
def test_a_quorum_that_writes_nothing_is_not_compared(state: MigrationState) -> None:
    found = look([1], [2], state)
    assert not values_found(found)
    (gap,) = found.gaps
    assert gap.startswith("the quorum does not write to ZooKeeper: ")


@pytest.mark.usefixtures("waited")
def test_a_quorum_that_began_with_a_snapshot_is_compared() -> None:
    theirs = Known(topics={"t": Topic("id")})
    found = settled(
        lambda: Quorum(theirs, MigrationState.NONE, 42),
        lambda: ZooKeeperKnowledge(Known()),
        SETTLE_S,
    )
    assert [one.subject.name for one in found.differences] == ["t"]
    assert not found.gaps


def test_a_quorum_is_read_from_its_log(tmp_path: Path) -> None:
    state = Record(RecordType.ZK_MIGRATION_STATE, {"zk_migration_state": 1})
    write(tmp_path, 0, batch(0, values([topic("t"), partition(), change(leader=2), state])))
    read = read_quorum(tmp_path)
    assert (read.migration, read.offset, read.known.partitions) == (MigrationState.MIGRATION, 4, 1)


def test_a_log_that_does_not_fit_together(tmp_path: Path) -> None:
    write(tmp_path, 0, batch(0, values([topic("t")])), batch(1, values([change()])))
    with pytest.raises(UnreadableMetadataLog, match=f"{tmp_path}: a record after offset 1 fits"):
        read_quorum(tmp_path)
