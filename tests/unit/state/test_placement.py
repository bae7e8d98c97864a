"""Where new replicas go: Kafka's own examples."""

from __future__ import annotations

import pytest

from state.partitions.placement import (
    IncompleteRacks,
    InvalidPartitions,
    InvalidReplicationFactor,
    alternate_racks,
    place_replicas,
)

SIX = {0: "rack1", 1: "rack2", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}


def test_the_worked_example_of_ten_partitions_with_three_replicas_on_five_brokers() -> None:
    """Followers shift one further on each round."""
    placed = place_replicas(dict.fromkeys(range(5)), 10, 3, start_index=0, shift=0)
    assert placed.tolist() == [
        [0, 1, 2],
        [1, 2, 3],
        [2, 3, 4],
        [3, 4, 0],
        [4, 0, 1],
        [0, 2, 3],
        [1, 3, 4],
        [2, 4, 0],
        [3, 0, 1],
        [4, 1, 2],
    ]


def test_partitions_that_are_added_continue_the_rounds() -> None:
    """The shift grows whenever a partition number is a multiple of the number of brokers."""
    added = place_replicas(dict.fromkeys(range(5)), 2, 3, start_index=0, shift=0, first_partition=5)
    assert added.tolist() == [[0, 2, 3], [1, 3, 4]]
    later = place_replicas(dict.fromkeys(range(5)), 2, 3, start_index=0, shift=0, first_partition=4)
    assert later.tolist() == [[4, 0, 1], [0, 2, 3]]


def test_each_partition_has_its_replicas_in_different_racks() -> None:
    placed = place_replicas(SIX, 6, 3, start_index=2, shift=2)
    assert placed.tolist() == [[3, 2, 0], [5, 4, 1], [2, 0, 3], [4, 1, 5], [0, 3, 2], [1, 5, 4]]


def test_neighbours_in_the_arrangement_are_in_different_racks() -> None:
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assert alternate_racks(racks) == [0, 3, 1, 5, 4, 2]
    assert alternate_racks({7: "a", 3: "b", 4: "b", 5: "b"}) == [7, 3, 4, 5]


def test_one_broker_takes_everything() -> None:
    assert place_replicas({7: None}, 3, 1, start_index=0, shift=0).tolist() == [[7], [7], [7]]


@pytest.mark.parametrize(
    ("racks", "partitions", "factor", "error"),
    [
        ({1: None}, 0, 1, InvalidPartitions),
        ({1: None}, 1, 0, InvalidReplicationFactor),
        ({1: None}, 1, 2, InvalidReplicationFactor),
        ({1: None, 2: "a"}, 1, 1, IncompleteRacks),
        (dict.fromkeys(range(1_001)), 1, 1_001, InvalidReplicationFactor),
    ],
)
def test_what_cannot_be_placed_is_named(
    racks: dict[int, str | None], partitions: int, factor: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        place_replicas(racks, partitions, factor, start_index=0, shift=0)
