"""Events about topics and their partitions, turned into what observers and gateway would log."""

from __future__ import annotations

from typing import Any

from state.partitions.growth import place_new_partitions
from streaming.zk.znodes import TopicZNode, parse_topic, topic_bytes, topic_path
from tests.conformance import names
from tests.conformance.sink import settle
from tests.conformance.verdict import only
from tests.conformance.world import World
from tests.fixtures.observed_topics import topics_of


def create_topic(world: World, event: dict[str, Any]) -> None:
    """A client writes a topic znode itself, and the observer sees it."""
    only(event, {"event", "topic", "assignment", "topic_id"}, "create_topic")
    assignment = {int(partition): ids for partition, ids in event["assignment"].items()}
    znode = TopicZNode(assignment, names.topic_id(event.get("topic_id")))
    world.store.put(topic_path(event["topic"]), topic_bytes(znode))
    _observe(world, event["topic"])


def _observe(world: World, topic: str) -> None:
    world.happen("topic_observed", topic, **world.topic_now(topic))
    settle(world)


def add_partitions(world: World, event: dict[str, Any]) -> None:
    """A client writes more partitions into a topic znode, and the observer sees it.

    Without an assignment they are placed where partition 0's first replica says, as AdminZkClient
    does.
    """
    fields = {"event", "topic", "assignment", "topic_id_in_znode"}
    only(event, fields | {"assignment_existing", "total_partitions"}, "add_partitions")
    path = topic_path(event["topic"])
    before = parse_topic(world.store.nodes[path].data)
    if "assignment" in event:
        assignment = {int(partition): ids for partition, ids in event["assignment"].items()}
    else:
        assignment = _placed(world, event)
    label = event.get("topic_id_in_znode")
    topic_id = before.topic_id if label is None else names.topic_id(label)
    znode = TopicZNode(assignment, topic_id, before.adding, before.removing)
    world.store.change(path, topic_bytes(znode))
    _observe(world, event["topic"])


def _placed(world: World, event: dict[str, Any]) -> dict[int, list[int]]:
    existing = {int(partition): ids for partition, ids in event["assignment_existing"].items()}
    placed = place_new_partitions(
        {broker: rack for broker, (_, rack) in sorted(world.brokers.items())},
        event["total_partitions"] - len(existing),
        existing[0],
        len(existing),
    )
    return existing | dict(enumerate(placed.tolist(), start=len(existing)))


def isr_change(world: World, event: dict[str, Any]) -> None:
    """A leader's AlterPartition with the present epochs, which must be accepted."""
    only(event, {"event", "topic", "partition", "isr", "broker"}, "isr_change")
    found = world.row(event["topic"], event["partition"])
    assert found is not None, f"{event['topic']}-{event['partition']} does not exist"
    slot, row = found
    rows = slot.table.rows
    leader = event.get("broker", int(rows.leader[row]))
    _alter(
        world,
        topic=event["topic"],
        topic_id=None,
        sender=(leader, world.brokers[leader][0]),
        version=3,
        partition=_partition(
            event["partition"],
            (int(rows.leader_epoch[row]), int(rows.zk_version[row])),
            event["isr"],
            0,
        ),
    )
    [partition] = world.replies[-1]["partitions"]
    assert partition["error"] == 0, f"the ISR change was refused: {world.replies[-1]}"


def alter_partition(world: World, event: dict[str, Any]) -> None:
    """A leader asks for an ISR; a topic id nobody knows reaches the machines without a name."""
    fields = {"event", "broker", "broker_epoch", "version", "partition", "leader_epoch"}
    fields |= {"partition_epoch", "isr", "leader_recovery_state", "topic_id", "topic"}
    only(event, fields, "alter_partition")
    label = event.get("topic_id")
    topic = event.get("topic") or _topic_by_id(world, names.topic_id(label))
    world.answer["sent"] = topic or label
    _alter(
        world,
        topic=topic,
        topic_id=names.topic_id(label),
        sender=(event["broker"], event["broker_epoch"]),
        version=event["version"],
        partition=_partition(
            event["partition"],
            (event["leader_epoch"], event["partition_epoch"]),
            event["isr"],
            event.get("leader_recovery_state", 0),
        ),
    )


def _topic_by_id(world: World, topic_id: str | None) -> str:
    for topic in topics_of(world.store):
        if parse_topic(world.store.nodes[topic_path(topic)].data).topic_id == topic_id:
            return topic
    return ""


def _partition(
    partition: int, epochs: tuple[int, int], isr: list[int], recovery: int
) -> dict[str, Any]:
    leader_epoch, partition_epoch = epochs
    return {
        "partition": partition,
        "leader_epoch": leader_epoch,
        "partition_epoch": partition_epoch,
        "isr": isr,
        "recovery": recovery,
    }


def _alter(
    world: World,
    *,
    topic: str,
    topic_id: str | None,
    sender: tuple[int, int],
    version: int,
    partition: dict[str, Any],
) -> None:
    world.happen(
        "alter_partition_requested",
        topic,
        request_id="alter_partition",
        broker_id=sender[0],
        broker_epoch=sender[1],
        version=version,
        topic=topic,
        topic_id=topic_id,
        partitions=[partition],
    )
    settle(world)
