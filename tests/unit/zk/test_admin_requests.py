"""Requests under /admin as tools write them."""

from __future__ import annotations

import pytest

from streaming.zk.znodes.admin import (
    parse_preferred_election,
    parse_reassignment,
    reassignment_bytes,
)
from tests.fixtures.znodes import preferred_election_bytes


def test_elections_are_written_and_read() -> None:
    data = b'{"version":1,"partitions":[{"topic":"t","partition":0}]}'
    assert preferred_election_bytes([("t", 0)]) == data
    assert parse_preferred_election(data) == [("t", 0)]


def test_reassignments_are_written_and_read() -> None:
    data = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,1]}]}'
    assert reassignment_bytes({("t", 0): [2, 1]}) == data
    assert parse_reassignment(data) == {("t", 0): [2, 1]}
    more = b'{"partitions":[{"topic":"t","partition":0,"replicas":[2],"log_dirs":["any"]}]}'
    assert parse_reassignment(more) == {("t", 0): [2]}


@pytest.mark.parametrize("parse", [parse_preferred_election, parse_reassignment])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"partitions":[{"topic":"t"}]}',
        b'{"partitions":[{"topic":"t","partition":"x","replicas":[]}]}',
        b'{"partitions":[{"topic":"t","partition":4294967296,"replicas":[1]}]}',
        b'{"partitions":[7]}',
    ],
)
def test_what_is_broken_is_named(parse, data: bytes) -> None:
    with pytest.raises(ValueError, match="broken znode"):
        parse(data)


def test_a_broker_id_that_no_broker_can_have_is_broken() -> None:
    with pytest.raises(ValueError, match="32-bit"):
        parse_reassignment(b'{"partitions":[{"topic":"t","partition":0,"replicas":[4294967296]}]}')
