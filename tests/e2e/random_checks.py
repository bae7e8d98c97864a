"""What must hold when random operations are over, and what must hold soon even in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streaming.demo.cluster import DemoCluster
from streaming.demo.metadata import BrokerView
from streaming.demo.sighting import PartitionSeen
from streaming.demo.steps import OURS
from streaming.internal_topics import GROUP_TOPIC
from streaming.process.polling import polls
from streaming.zk.client import ZkSession
from streaming.zk.errors import ZooKeeperError
from streaming.zk.znodes import DELETE_TOPICS_PATH, TOPICS_PATH, TopicZNode
from tests.e2e.random_stage import ELECTION, PLAN
from tests.e2e.replica_folders import replica_folders, topics_of
from tests.e2e.waiting import WAIT_S

Leaders = dict[tuple[str, int], int]

_POLL_S = 0.5


def wait_until_none(missing: Callable[[], list[str]], limit_s: float) -> list[str]:
    """Wait until nothing is missing any more, and return what still is after limit_s."""
    for _ in polls(limit_s, _POLL_S):
        try:
            found = missing()
        except ZooKeeperError as error:
            found = [f"ZooKeeper does not answer: {error}"]
        if not found:
            break
    return found


def leaderless(demo: DemoCluster, session: ZkSession, down: set[int]) -> list[str]:
    """Return the partitions that have no living leader although a member of their ISR lives.

    Those of topics that are being deleted have none.
    """
    deleted = set(session.children(DELETE_TOPICS_PATH) or [])
    now = demo.look()
    alive = now.brokers.keys() - down
    return [
        f"{topic}-{partition} is led by {seen.leader}, its ISR is {list(seen.isr)}"
        for (topic, partition), seen in now.partitions.items()
        if seen is not None
        and topic not in deleted
        and seen.leader not in alive
        and alive & set(seen.isr)
    ]


def may_ack(demo: DemoCluster, topic: str, down: set[int]) -> bool:
    """Return whether some partition of a topic has a living leader and enough replicas in sync."""
    try:
        seen = demo.look().of_topic(topic).values()
    except ZooKeeperError:
        return False
    return any(
        one is not None and one.leader not in down and len(set(one.isr) - down) > 1 for one in seen
    )


def unfinished(demo: DemoCluster, session: ZkSession) -> list[str]:
    """Return what keeps a cluster whose brokers all run from being as it should be."""
    now = demo.look()
    found = [] if now.controller_id == OURS else [f"/controller names {now.controller_id}"]
    found += [f"broker {id_} is away" for id_ in demo.embedded.brokers.keys() - now.brokers.keys()]
    found += _left_over(session)
    topics = topics_of(session)
    for name, topic in topics.items():
        if topic.adding or topic.removing:
            found.append(f"{name} still moves: {topic.adding} {topic.removing}")
        for partition, replicas in topic.replicas.items():
            found += _unhealthy(f"{name}-{partition}", replicas, now.partitions[name, partition])
    found += _misinformed(demo)
    found += [f"{one} has no folder" for one in sorted(_assigned(topics) - _on_disks(demo))]
    return found


def wait_until_finished(demo: DemoCluster, session: ZkSession) -> None:
    """Wait until a cluster whose brokers all run is as it should be; fail when it does not come."""
    missing = wait_until_none(lambda: unfinished(demo, session), WAIT_S)
    assert not missing


def leftovers_of_absence(demo: DemoCluster, session: ZkSession) -> list[str]:
    """Return what brokers keep because they missed that it ended, as with any controller.

    Replicas on disks that were moved away while their broker was dead, and topics in the metadata
    of brokers that were deleted while their session was over: UpdateMetadata only adds to it.
    """
    topics = topics_of(session)
    ghosts = [
        f"{topic} in the metadata of {id_}"
        for id_, view in demo.broker_views().items()
        for topic in sorted({topic for topic, _ in view.leaders} - topics.keys() if view else ())
    ]
    return sorted(_on_disks(demo) - _assigned(topics)) + ghosts


def _left_over(session: ZkSession) -> list[str]:
    paths = [path for path in (PLAN, ELECTION) if session.get(path) is not None]
    deletions = session.children(DELETE_TOPICS_PATH) or []
    configs = set(session.children("/config/topics") or []) - set(session.children(TOPICS_PATH))
    return [
        *(f"{path} is left over" for path in paths),
        *(f"the deletion of {topic} is left over" for topic in deletions),
        *(f"the config of {topic} is left over" for topic in sorted(configs)),
    ]


def _unhealthy(name: str, replicas: Sequence[int], seen: PartitionSeen | None) -> list[str]:
    if seen is None:
        return [f"{name} has no state"]
    if seen.leader not in replicas:
        return [f"{name} is led by {seen.leader}, its replicas are {replicas}"]
    if sorted(seen.isr) != sorted(replicas):
        return [f"the ISR of {name} is {list(seen.isr)}, its replicas are {replicas}"]
    return []


def _misinformed(demo: DemoCluster) -> list[str]:
    """Return which brokers know something else; who leads groups may be us, which ZooKeeper does
    not name.
    """
    now = demo.look()
    leaders = {
        key: -1 if one is None else one.leader
        for key, one in now.partitions.items()
        if key[0] != GROUP_TOPIC
    }
    found = []
    for id_, view in demo.broker_views().items():
        if view is None:
            found.append(f"broker {id_} does not answer")
        elif view.controller_id != now.controller_id:
            found.append(f"broker {id_} takes {view.controller_id} for the controller")
        elif _known(view, leaders) != leaders:
            differ = dict(sorted(view.leaders.items() ^ leaders.items()))
            found.append(f"broker {id_} knows other leaders: {differ}")
    return found


def _known(view: BrokerView, leaders: Leaders) -> Leaders:
    """Return what a broker tells of topics whose leaders are asked for."""
    topics = {topic for topic, _ in leaders}
    return {at: leader for at, leader in view.leaders.items() if at[0] in topics}


def _assigned(topics: dict[str, TopicZNode]) -> set[str]:
    return {
        f"{name}-{partition} on {id_}"
        for name, topic in topics.items()
        for partition, replicas in topic.replicas.items()
        for id_ in replicas
    }


def _on_disks(demo: DemoCluster) -> set[str]:
    return {str(one) for one in replica_folders(demo)}
