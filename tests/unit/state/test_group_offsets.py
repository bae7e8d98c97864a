"""Offsets that go: with their topics, while commits are on their way, and when they expire."""

from __future__ import annotations

from typing import Any

import pytest

from state.groups.answers import fetch_offsets
from state.groups.tables import CoordinatorPhase
from state.protocol_errors import ProtocolError
from state.topic_partition import TopicPartition
from tests.unit.state.group_support import PARTITION, Coordinator, Watched

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)


def row(partition: TopicPartition, offset: int = 5) -> list[Any]:
    return [*partition, offset, -1, ""]


def topics_deleted(coordinator: Coordinator, *topics: str, group: str = "g") -> list[Any]:
    body = {"group": group, "partition": PARTITION, "topics": topics}
    return coordinator.happen("committed_topics_deleted", group, **body)


def test_the_offsets_of_a_deleted_topic_go_with_it() -> None:
    """GroupCoordinator.handleDeletedPartitions: committed, and in open transactions."""
    coordinator = Coordinator()
    coordinator.commit("g", [row(A0), row(B0)])
    coordinator.txn_commit("g", 7, [row(A0, 6), row(A1, 6), row(B0, 6)])
    changed, written = topics_deleted(coordinator, "a", "c")
    (change,) = changed["changes"]
    assert (change["change"], change["reason"]) == ("offsets_removed", "deleted")
    assert change["partitions"] == [[*A0], [*A1]]
    (tombstone,) = written["records"]
    assert (tombstone["topic"], tombstone["partition"], tombstone["value"]) == (*A0, None)
    group = coordinator.group("g")
    assert group is not None
    assert list(group.store.rows) == [B0]
    assert list(group.store.pending[7]) == [B0]
    assert topics_deleted(coordinator, "a") == []


def test_a_group_without_other_offsets_goes_with_the_topic() -> None:
    coordinator = Coordinator()
    coordinator.commit("g", [row(A0)])
    changed, _ = topics_deleted(coordinator, "a")
    assert [one["change"] for one in changed["changes"]] == ["offsets_removed", "group_removed"]
    assert coordinator.group("g") is None
    assert topics_deleted(coordinator, "a") == []


def test_topics_say_nothing_about_groups_that_are_loading() -> None:
    coordinator = Coordinator()
    coordinator.commit("g", [row(A0)])
    coordinator.happen("group_partitions_resigned", partitions=[PARTITION], epoch=1)
    coordinator.happen("group_partitions_elected", partitions=[PARTITION], epoch=2)
    observed = {"partition": PARTITION, "epoch": 2, "group": "g", "metadata": None}
    rows = [[*row(A0), 1_000, None, -5]]
    coordinator.happen("group_observed", "g", **observed, offsets=rows, pending=[])
    assert topics_deleted(coordinator, "a") == []


def test_deleting_no_offsets_leaves_an_empty_group() -> None:
    """GroupCoordinator.handleDeleteOffsets cleans up where a partition may be deleted only."""
    coordinator = Coordinator()
    joined = coordinator.join("g", version=3)
    coordinator.tick(3_000)
    member = coordinator.answer(joined)["member"]
    coordinator.ask("leave_group_requested", "g", members=[{"member": member}])
    coordinator.ask("offset_delete_requested", "g", partitions=[])
    assert coordinator.group("g") is not None


class Told:
    """The image of a coordinator with one group."""

    def __init__(self) -> None:
        self.coordinator = Watched()
        self.image = self.coordinator.image

    def take(self, kind: str, /, **body: Any) -> None:
        common = {"request_id": "r", "partition": PARTITION, "group": "g", "version": 5}
        self.coordinator.happen(kind, "g", **{**common, **body})

    def commit(self, *partitions: TopicPartition) -> None:
        offsets = [row(one) for one in partitions]
        self.take("offset_commit_requested", member="", generation=-1, offsets=offsets)

    def txn_commit(self, *partitions: TopicPartition) -> None:
        producer = {"producer_id": 7, "producer_epoch": 0}
        offsets = [row(one) for one in partitions]
        who = {"member": "", "generation": -1}
        self.take("txn_offset_commit_requested", **who, **producer, offsets=offsets)

    def fetched(self, *partitions: TopicPartition) -> list[tuple[int, ProtocolError]]:
        _, found = fetch_offsets(
            self.image, CoordinatorPhase.OWNED, "g", partitions, require_stable=True
        )
        return [(one.offset, one.error) for one in found]

    def assert_as_decided(self) -> None:
        group, view = self.coordinator.group("g"), self.image.groups.get("g")
        assert (group is None) == (view is None)
        if group is not None and view is not None:
            assert view.offsets == group.store.rows
            assert view.pending == group.store.pending


@pytest.mark.parametrize("kind", ["offset_delete_requested", "committed_topics_deleted"])
def test_a_commit_that_is_on_its_way_does_not_bring_a_deleted_offset_back(kind: str) -> None:
    """GroupMetadata.removeOffsets drops what is pending, too."""
    told = Told()
    told.commit(A0, B0)
    told.coordinator.end_writes()
    told.commit(A0, B0)
    told.txn_commit(A0, B0)
    told.take(kind, partitions=[[*A0]], topics=["a"])
    unstable = (-1, ProtocolError.UNSTABLE_OFFSET_COMMIT)
    assert told.fetched(A0, B0) == [(-1, ProtocolError.NONE), unstable]
    told.coordinator.end_writes()
    told.assert_as_decided()
    assert told.fetched(A0) == [(-1, ProtocolError.NONE)]


def test_a_commit_may_say_of_each_offset_when_it_was_made() -> None:
    """GroupCoordinatorAdapter.createOffsetAndMetadata: version 1 of the request does."""
    told = Told()
    offsets = [[*row(A0), 77], row(B0)]
    told.take("offset_commit_requested", member="", generation=-1, offsets=offsets)
    group = told.coordinator.group("g")
    assert group is not None
    times = {one: held.commit_ms for one, held in group.store.rows.items()}
    assert times == {A0: 77, B0: told.coordinator.now_ms}


def test_what_a_transaction_would_commit_is_not_on_its_way_once_it_is_deleted() -> None:
    told = Told()
    told.commit(B0)
    told.txn_commit(A0)
    told.coordinator.end_writes()
    told.take("offset_delete_requested", partitions=[[*A0]])
    assert told.fetched(A0) == [(-1, ProtocolError.NONE)]
    told.assert_as_decided()


def test_what_is_on_its_way_to_a_group_that_is_deleted_is_not_the_next_ones() -> None:
    told = Told()
    told.commit(B0)
    told.coordinator.end_writes()
    told.txn_commit(A0)
    told.take("delete_group_requested")
    told.commit(B0)
    told.coordinator.end_writes()
    told.assert_as_decided()
    assert told.fetched(A0, B0) == [(-1, ProtocolError.NONE), (5, ProtocolError.NONE)]


def test_offsets_set_in_an_empty_group_expire_by_when_it_became_empty() -> None:
    """GroupMetadata.removeExpiredOffsets: an empty group's offsets count from its last state."""
    coordinator = Coordinator(**{"offsets.retention.ms": 60_000})
    joined = coordinator.join("g", version=3)
    coordinator.tick(3_000)
    member = coordinator.answer(joined)["member"]
    coordinator.ask("leave_group_requested", "g", members=[{"member": member}])
    coordinator.tick(50_000)
    coordinator.commit("g", [row(A0)])
    coordinator.tick(62_999)
    assert coordinator.expire() == []
    coordinator.tick(63_000)
    assert coordinator.expire()[0]["changes"][0]["reason"] == "expired"
    assert coordinator.group("g") is None


def test_an_offset_does_not_expire_while_a_transaction_has_a_newer_one() -> None:
    """The transaction's marker may be in the topic already, ahead of where a tombstone would be."""
    coordinator = Coordinator(**{"offsets.retention.ms": 60_000})
    coordinator.commit("g", [row(A0), row(B0)])
    coordinator.tick(100_000)
    coordinator.txn_commit("g", 9, [row(A0, 8)])
    (removed,) = removals(coordinator.expire())
    assert removed["partitions"] == [[*B0]]
    coordinator.happen(
        "transaction_completed", producer_id=9, committed=True, partitions=[PARTITION]
    )
    assert coordinator.expire() == []
    coordinator.tick(300_000)
    (removed,) = removals(coordinator.expire())
    assert removed["partitions"] == [[*A0]]


def removals(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the changes that remove expired offsets."""
    changes = [change for step in steps for change in step["changes"]]
    return [one for one in changes if one.get("reason") == "expired" and "partitions" in one]
