"""Reads what a migration to KRaft would read of ZooKeeper, beside topics and brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import orjson

from state.payloads.admin import PREFERRED_ELECTION_PATH, REASSIGN_PARTITIONS_PATH
from streaming.migration.configs import KINDS, config_findings
from streaming.migration.findings import Finding, Weight
from streaming.zk.errors import RequestFailed
from streaming.zk.multiread import children_many, read_many
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import (
    CONFIG_PATH,
    MIGRATION_PATH,
    PRODUCER_ID_BLOCK_PATH,
    parse_producer_id_block,
)
from streaming.zk.znodes.acls import ACL_PATHS, parse_acls, resource_type
from streaming.zk.znodes.delegation_tokens import TOKENS_PATH, parse_token

_CLIENTS_OF_USERS = "clients"


def znode_findings(session: ZkReader, gaps: list[str], *, begun: bool) -> Iterator[Finding]:
    """Yield what is found; gaps gets what may not be read, begun: whether the migration has begun.

    Raises the errors of streaming.zk.errors but RequestFailed.
    """
    parts: list[Callable[[ZkReader], Iterator[Finding]]] = [_configs, _others, _requests]
    if not begun:
        parts.append(_made_before)
    for part in parts:
        try:
            yield from part(session)
        except RequestFailed as error:
            gaps.append(str(error))


def _configs(session: ZkReader) -> Iterator[Finding]:
    folders = [f"{CONFIG_PATH}/{kind}" for kind in KINDS]
    paths = _below(session, folders)
    users = [path for path in paths if path.startswith(f"{CONFIG_PATH}/users/")]
    paths += _below(session, [f"{path}/{_CLIENTS_OF_USERS}" for path in users])
    yield from config_findings(_data(session, paths))


def _others(session: ZkReader) -> Iterator[Finding]:
    """Those that have to be readable, whatever they say."""
    lists = [
        f"{root}/{kind}"
        for root in ACL_PATHS
        for kind in session.children(root) or ()
        if resource_type(kind) is not None
    ]
    read: Mapping[Callable[[bytes], object], Sequence[str]] = {
        parse_acls: _below(session, lists),
        parse_token: _below(session, [TOKENS_PATH]),
        parse_producer_id_block: [PRODUCER_ID_BLOCK_PATH],
    }
    for parse, paths in read.items():
        for path, data in _data(session, paths).items():
            try:
                if data:  # a znode that has only just been made has none
                    parse(data)
            except ValueError as error:
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


def _below(session: ZkReader, folders: Sequence[str]) -> list[str]:
    """Return the paths of all znodes in some folders."""
    found = children_many(session, folders)
    return [
        f"{folder}/{name}"
        for folder, names in zip(folders, found, strict=True)
        for name in sorted(names or ())
    ]


def _data(session: ZkReader, paths: Sequence[str]) -> dict[str, bytes]:
    read = read_many(session, paths).data
    return {path: data for path, data in zip(paths, read, strict=True) if data is not None}
