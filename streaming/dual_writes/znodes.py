"""What of ZooKeeper a KRaft quorum writes (KRaftMigrationZkWriter), read as that would know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from streaming.dual_writes.knowledge import (
    Fact,
    Known,
    LeftOut,
    Matter,
    Partition,
    Secret,
    Subject,
    Topic,
    partition_subject,
)
from streaming.dual_writes.naming import (
    PRODUCER_IDS,
    acl_subject,
    config_fact,
    config_subject,
    may,
    token_facts,
)
from streaming.migration.entities import below, config_data, data_of, each_read
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
    partition_state_path,
)
from streaming.zk.znodes.acls import parse_acls
from streaming.zk.znodes.delegation_tokens import TOKENS_PATH, parse_token
from streaming.zk.znodes.quotas import quota_value

_PLAIN = ("topics/", "brokers/")
"""Whose configurations are no quotas."""


@dataclass(slots=True)
class ZooKeeperKnowledge:
    """What ZooKeeper has, and what could not be read, which is left out of a comparison."""

    known: Known = field(default_factory=Known)
    left_out: LeftOut = field(default_factory=LeftOut)
    gaps: list[str] = field(default_factory=list)


def read_knowledge(session: ZkReader) -> ZooKeeperKnowledge:
    """Read all of it, each part as it is when it is read.

    Raises the errors of streaming.zk.errors but RequestFailed.
    """
    found = ZooKeeperKnowledge()
    for matter, read in _PARTS.items():
        try:
            read(session, found)
        except RequestFailed as error:
            found.gaps.append(str(error))
            found.left_out.matters.add(matter)
    return found


def _topics(session: ZkReader, found: ZooKeeperKnowledge) -> None:
    cluster = read_cluster(session)
    found.left_out.subjects.update(Subject(Matter.TOPIC, name) for name in cluster.left_out)
    found.gaps += cluster.unread
    unread = {gap.partition(": ")[0] for gap in cluster.unread}
    for name, topic in cluster.topics.items():
        for number in topic.partitions if unread else ():
            if partition_state_path(name, number) in unread:
                found.left_out.subjects.add(partition_subject(name, number))
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
    data = config_data(session)

    def about(path: str) -> Subject:
        kind, _, name = path.removeprefix(f"{CONFIG_PATH}/").partition("/")
        return config_subject(kind, name)

    _take(found, data, about, _config_facts)


def _config_facts(subject: Subject, said: bytes) -> dict[str, Fact]:
    """Raises ValueError."""
    fact = config_fact if subject.name.startswith(_PLAIN) else _limit
    return {key: fact(key, value) for key, value in parse_config(said).items()}


def _limit(key: str, value: str) -> Fact:
    """Return a quota or a credential; raises ValueError naming it."""
    try:
        return Secret(parse_credential(value)) if key in DIGESTS else quota_value(value)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from error


def _acls(session: ZkReader, found: ZooKeeperKnowledge) -> None:
    patterns = dict(acl_lists(session))

    def about(path: str) -> Subject:
        pattern = patterns[path]
        return acl_subject(pattern.resource_type, pattern.name, pattern.prefixed)

    data = data_of(session, list(patterns))
    _take(found, data, about, lambda _, said: {may(acl): True for acl in parse_acls(said)})


def _tokens(session: ZkReader, found: ZooKeeperKnowledge) -> None:
    data = data_of(session, below(session, [TOKENS_PATH]))

    def about(path: str) -> Subject:
        return Subject(Matter.DELEGATION_TOKEN, path.removeprefix(f"{TOKENS_PATH}/"))

    _take(found, data, about, lambda _, said: token_facts(parse_token(said)))


def _producer_ids(session: ZkReader, found: ZooKeeperKnowledge) -> None:
    data = data_of(session, [PRODUCER_ID_BLOCK_PATH])
    _take(found, data, lambda _: PRODUCER_IDS, lambda _, said: _block_facts(said))


def _block_facts(said: bytes) -> dict[str, Fact]:
    """Raises ValueError."""
    return {"next": parse_producer_id_block(said).next_producer_id}


def _take(
    found: ZooKeeperKnowledge,
    data: Mapping[str, bytes],
    about: Callable[[str], Subject],
    facts: Callable[[Subject, bytes], dict[str, Fact]],
) -> None:
    """Take what znodes say that have data; what raises ValueError is left out.

    about: what a path is about. facts: what the data say about it.
    """
    read, broken = each_read(data, lambda path, said: facts(about(path), said))
    found.known.facts |= {about(path): said for path, said in read.items()}
    for path, error in broken.items():
        found.gaps.append(f"{path}: {error}")
        found.left_out.subjects.add(about(path))


_PARTS: Mapping[Matter, Callable[[ZkReader, ZooKeeperKnowledge], None]] = {
    Matter.TOPIC: _topics,
    Matter.CONFIG: _configs,
    Matter.ACL: _acls,
    Matter.DELEGATION_TOKEN: _tokens,
    Matter.PRODUCER_IDS: _producer_ids,
}
