"""Reads what a migration to KRaft would read of ZooKeeper, beside topics and brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import orjson

from state.payloads.admin import PREFERRED_ELECTION_PATH, REASSIGN_PARTITIONS_PATH
from streaming.migration.configs import config_findings
from streaming.migration.controllers import Controller
from streaming.migration.entities import below, config_data, data_of, each_read
from streaming.migration.findings import Finding, Weight
from streaming.observers.acl_lists import acl_lists
from streaming.zk.errors import RequestFailed
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import (
    MIGRATION_PATH,
    PRODUCER_ID_BLOCK_PATH,
    parse_producer_id_block,
)
from streaming.zk.znodes.acls import parse_acls
from streaming.zk.znodes.delegation_tokens import TOKENS_PATH, parse_token


def znode_findings(
    session: ZkReader,
    gaps: list[str],
    *,
    begun: bool,
    controllers: Sequence[Controller] = (),
) -> Iterator[Finding]:
    """Yield what is found; gaps gets what may not be read, begun: whether the migration has begun.
    controllers: those to which the cluster migrates, if they are known.

    Raises the errors of streaming.zk.errors but RequestFailed.
    """
    parts: list[Callable[[ZkReader], Iterator[Finding]]] = [
        lambda reader: config_findings(config_data(reader), controllers),
        _others,
        _requests,
    ]
    if not begun:
        parts.append(_made_before)
    for part in parts:
        try:
            yield from part(session)
        except RequestFailed as error:
            gaps.append(str(error))


def _others(session: ZkReader) -> Iterator[Finding]:
    """Those that have to be readable, whatever they say."""
    read: Mapping[Callable[[bytes], object], Sequence[str]] = {
        parse_acls: [path for path, _ in acl_lists(session)],
        parse_token: below(session, [TOKENS_PATH]),
        parse_producer_id_block: [PRODUCER_ID_BLOCK_PATH],
    }
    for parse, paths in read.items():
        yield from _unreadable(data_of(session, paths), parse)
    if read[parse_token]:
        yield Finding(
            Weight.TO_DO,
            TOKENS_PATH,
            f"there are {len(read[parse_token])} delegation tokens",
            "give the KRaft controllers the brokers' delegation.token.secret.key",
            settled_by=("delegation.token.secret.key", "delegation.token.master.key"),
        )


def _unreadable(data: Mapping[str, bytes], parse: Callable[[bytes], object]) -> Iterator[Finding]:
    _, broken = each_read(data, lambda _, said: parse(said))
    for path, error in broken.items():
        what, remedy = f"it cannot be read: {error}", "mend it, or delete it"
        yield Finding(Weight.STOPS, path, what, remedy)


def _requests(session: ZkReader) -> Iterator[Finding]:
    for path in (REASSIGN_PARTITIONS_PATH, PREFERRED_ELECTION_PATH):
        if session.get(path) is not None:
            what = "a request is under way in it, of which KRaft knows nothing"
            yield Finding(Weight.CHANGES, path, what, "wait until it is carried out, or delete it")


def _made_before(session: ZkReader) -> Iterator[Finding]:
    before = session.get(MIGRATION_PATH)
    if before is not None and _is_done(before.data):
        yield Finding(
            Weight.STOPS,
            MIGRATION_PATH,
            "a migration was made before: what its KRaft quorum knows would be written over"
            " ZooKeeper, and nothing of ZooKeeper be read",
            "if it was rolled back, delete this, and begin with a KRaft quorum that knows nothing",
        )


def _is_done(data: bytes) -> bool:
    """Return whether metadata was migrated (ZkMigrationLeadershipState)."""
    try:
        return int(orjson.loads(data)["kraft_metadata_offset"]) >= 0
    except (ValueError, KeyError, TypeError):
        return True
