"""What brokers have of replicas on their disks."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from streaming.demo.cluster import DemoCluster
from streaming.zk.client import ZkSession
from streaming.zk.znodes import TOPICS_PATH, TopicZNode, parse_topic, topic_path
from tests.e2e.demo_cluster import start_again
from tests.e2e.waiting import wait_for

_FOLDER = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)")
_TOPIC_ID = re.compile(r"^topic_id: (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ReplicaFolder:
    """The folder of one replica."""

    broker: int
    topic: str
    partition: int
    path: Path

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on {self.broker}"

    @property
    def topic_id(self) -> str | None:
        """The id of the topic that it was made for, None where none is noted."""
        try:
            found = _TOPIC_ID.search((self.path / "partition.metadata").read_text())
        except OSError:
            return None
        return None if found is None else found[1]


def replica_folders(demo: DemoCluster) -> Iterator[ReplicaFolder]:
    """Return all that are not on their way out."""
    for id_, broker in demo.embedded.brokers.items():
        for path in itertools.chain.from_iterable(map(Path.iterdir, broker.log_dirs)):
            if path.is_dir() and (name := _FOLDER.fullmatch(path.name)):
                yield ReplicaFolder(id_, name["topic"], int(name["partition"]), path)


def topics_of(session: ZkSession) -> dict[str, TopicZNode]:
    """Return the topics that ZooKeeper has."""
    names = session.children(TOPICS_PATH) or []
    znodes = {name: session.get(topic_path(name)) for name in names}
    return {name: parse_topic(one.data) for name, one in znodes.items() if one is not None}


def on_disk(demo: DemoCluster, topic: str, partition: int = 0) -> list[int]:
    """Return the brokers that have a replica on their disk."""
    wanted = (topic, partition)
    return [one.broker for one in replica_folders(demo) if (one.topic, one.partition) == wanted]


def delete_earlier(demo: DemoCluster, session: ZkSession, timeout_s: float) -> list[str]:
    """Delete the replicas of earlier topics whose name another one has now, and return which: do
    what an operator does where brokers refuse the new one's (docs/operating.md).

    timeout_s: for each broker's end, the end of its session, and its start.
    """
    found: dict[int, list[ReplicaFolder]] = {}
    topics = wait_for("the topics", lambda: topics_of(session))
    for one in replica_folders(demo):
        topic, id_ = topics.get(one.topic), one.topic_id
        if topic is not None and None not in (id_, topic.topic_id) and id_ != topic.topic_id:
            found.setdefault(one.broker, []).append(one)
    for broker_id, folders in found.items():
        demo.broker(broker_id).terminate(timeout_s)
        for one in folders:
            shutil.rmtree(one.path)
        start_again(demo, session, broker_id, timeout_s)
    return [str(one) for folders in found.values() for one in folders]
