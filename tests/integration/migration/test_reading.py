"""What of a real ZooKeeper a migration to KRaft could not take as it is."""

from __future__ import annotations

import pytest

from state.payloads.admin import PREFERRED_ELECTION_PATH, REASSIGN_PARTITIONS_PATH
from streaming.migration.findings import Weight
from streaming.migration.reading import znode_findings
from streaming.zk.client import ZkSession
from streaming.zk.znodes import MIGRATION_PATH, PRODUCER_ID_BLOCK_PATH, config_bytes
from tests.fixtures.znodes import put_znode

STOPS, CHANGES, TO_DO = Weight
TOKENS = (TO_DO, "/delegation_token/tokens")
UNREADABLE = [
    "/config/topics/t",
    "/kafka-acl/Topic/a",
    "/kafka-acl-extended/prefixed/Group/b",
    "/delegation_token/tokens/c",
    PRODUCER_ID_BLOCK_PATH,
]


def found(session: ZkSession, *, begun: bool = False) -> list[tuple[Weight, str]]:
    gaps: list[str] = []
    ones = [(one.weight, one.where) for one in znode_findings(session, gaps, begun=begun)]
    assert not gaps
    return ones


def test_nothing_is_found_where_nothing_is(zk_session: ZkSession) -> None:
    assert not found(zk_session)
    for path in UNREADABLE:
        put_znode(zk_session, path)  # without data, as brokers create some
    put_znode(zk_session, "/kafka-acl/Unheard/a", b"{")
    assert found(zk_session) == [TOKENS]


def test_what_cannot_be_read(zk_session: ZkSession) -> None:
    for path in UNREADABLE:
        put_znode(zk_session, path, b"{")
    assert found(zk_session) == [*((STOPS, path) for path in UNREADABLE), TOKENS]


def test_quotas_of_all_kinds_of_entities_are_looked_at(zk_session: ZkSession) -> None:
    paths = [
        f"/config/{name}" for name in ("clients/c", "ips/10.0.0.1", "users/u", "users/u/clients/c")
    ]
    for path in paths:
        put_znode(zk_session, path, config_bytes({"rate": "fast"}))
    assert found(zk_session) == [(STOPS, path) for path in paths]


def test_requests_that_wait(zk_session: ZkSession) -> None:
    for path in (PREFERRED_ELECTION_PATH, REASSIGN_PARTITIONS_PATH):
        put_znode(zk_session, path, b"{}")
    assert found(zk_session) == [
        (CHANGES, REASSIGN_PARTITIONS_PATH),
        (CHANGES, PREFERRED_ELECTION_PATH),
    ]


@pytest.mark.parametrize(
    ("data", "stops"),
    [
        (b'{"version":0,"kraft_metadata_offset":-1}', False),
        (b'{"version":0,"kraft_metadata_offset":77}', True),
        (b"{}", True),
    ],
)
def test_a_migration_that_was_made_before(zk_session: ZkSession, data: bytes, stops: bool) -> None:
    put_znode(zk_session, MIGRATION_PATH, data)
    assert found(zk_session) == ([(STOPS, MIGRATION_PATH)] if stops else [])
    assert not found(zk_session, begun=True)
