"""What of ZooKeeper a KRaft quorum writes (KRaftMigrationZkWriter), read as that would know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from streaming.dual_writes.knowledge import HIDDEN, Fact, Known, Matter, Partition, Subject, Topic
from streaming.dual_writes.naming import (
    PRODUCER_IDS,
    acl_subject,
    config_subject,
    credential_fact,
    may,
    token_facts,
)
from streaming.migration.configs import is_password
from streaming.migration.entities import below, config_data, data_of
from streaming.observers.acl_lists import acl_lists
from streaming.security.scram import DIGESTS, parse_credential
from streaming.verification.cluster import Topic as HeldTopic
from streaming.verification.cluster import read_cluster
from streaming.zk.errors import RequestFailed
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import (
    CONFIG_PATH,
    PRODUCER_ID_BLOCK_PATH,
    parse_config,
    parse_producer_id_block,
)
from streaming.zk.znodes.acls import parse_acls
from streaming.zk.znodes.delegation_tokens import TOKENS_PATH, parse_token

_PLAIN = frozenset({"topics", "brokers"})
_QUORUMS = -1
"""Whose a block of producer ids is that a quorum has written, which begins with the next one that
it gives; a broker's block ends before that (ZkMigrationClient.writeProducerId, migrateProducerId).
"""
_Parsed = TypeVar("_Parsed")


@dataclass(slots=True)
class ZooKeeperKnowledge:
    """What ZooKeeper has, which topics are left out, and what could not be read."""

    known: Known = field(default_factory=Known)
    left_out: frozenset[str] = frozenset()
    gaps: list[str] = field(default_factory=list)


def read_knowledge(session: ZkReader) -> ZooKeeperKnowledge:
    """Read all of it, each part as it is when it is read.

    Raises the errors of streaming.zk.errors but RequestFailed.
    """
    found = ZooKeeperKnowledge()
    for read in (_topics, _configs, _acls, _tokens, _producer_ids):
        try:
            read(session, found)
        except RequestFailed as error:
            found.gaps.append(str(error))
    return found


def _topics(session: ZkReader, found: ZooKeeperKnowledge) -> None:
    cluster = read_cluster(session)
    found.left_out = cluster.left_out
    found.gaps += cluster.unread
    for name, topic in cluster.topics.items():
        partitions = {number: _partition(topic, number) for number in topic.partitions}
        found.known.topics[name] = Topic(topic.topic_id, partitions)


def _partition(topic: HeldTopic, number: int) -> Partition | None:
    held = topic.partitions[number]
    if held is None:
        return None
    return Partition(
        held.leader,
        held.leader_epoch,
        held.isr,
        held.replicas,
        tuple(sorted(topic.adding.get(number, ()))),
        tuple(sorted(topic.removing.get(number, ()))),
    )


def _configs(session: ZkReader, found: ZooKeeperKnowledge) -> None:
    for path, config in _parsed(config_data(session), parse_config, found):
        kind, _, name = path.removeprefix(f"{CONFIG_PATH}/").partition("/")
        facts = found.known.facts[config_subject(kind, name)]
        for key, value in config.items():
            try:
                facts[key] = _config_fact(kind, key, value)
            except ValueError as error:
                found.gaps.append(f"{path}: {key}: {error}")


def _config_fact(kind: str, key: str, value: str) -> Fact:
    """Raises ValueError."""
    if kind in _PLAIN:
        return HIDDEN if is_password(key) else value
    if key in DIGESTS:
        return credential_fact(parse_credential(value))
    return float(value)


def _acls(session: ZkReader, found: ZooKeeperKnowledge) -> None:
    patterns = dict(acl_lists(session))
    for path, acls in _parsed(data_of(session, list(patterns)), parse_acls, found):
        about = patterns[path]
        subject = acl_subject(about.resource_type, about.name, about.prefixed)
        found.known.facts[subject].update((may(acl), True) for acl in acls)


def _tokens(session: ZkReader, found: ZooKeeperKnowledge) -> None:
    data = data_of(session, below(session, [TOKENS_PATH]))
    for _, token in _parsed(data, parse_token, found):
        found.known.facts[Subject(Matter.DELEGATION_TOKEN, token.token_id)] = token_facts(token)


def _producer_ids(session: ZkReader, found: ZooKeeperKnowledge) -> None:
    data = data_of(session, [PRODUCER_ID_BLOCK_PATH])
    for _, block in _parsed(data, parse_producer_id_block, found):
        following = block.block_start if block.broker_id == _QUORUMS else block.block_end + 1
        found.known.facts[PRODUCER_IDS]["next"] = following


def _parsed(
    data: Mapping[str, bytes], parse: Callable[[bytes], _Parsed], found: ZooKeeperKnowledge
) -> list[tuple[str, _Parsed]]:
    """Return what znodes say that can be read, but for those that have no data."""
    parsed = []
    for path, one in data.items():
        try:
            if one:
                parsed.append((path, parse(one)))
        except ValueError as error:
            found.gaps.append(f"{path}: {error}")
    return parsed
