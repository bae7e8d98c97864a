"""What happens to topics in random logs: they appear, grow, are configured, are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from state.matrix import unpad
from state.protocol_errors import ProtocolError
from state.topic_ids import topic_id_to_text
from tests.fixtures.story import OURSELVES
from tests.logs.log_parts import BROKERS, TOPICS, chosen, deleting, some_of, state_of

if TYPE_CHECKING:
    from tests.logs.state_logs import Author


def observe_topic(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A topic appears, or gets more partitions; sometimes with states, or with us in a list."""
    topic = author.a_topic(a) if b % 4 else TOPICS[a % len(TOPICS)]
    slot = author.slot()
    known = slot.table.rows_of(topic)
    rows, held = slot.table.rows, slot.table.topic(topic)
    replicas = [unpad(row) for row in rows.replicas[known]]
    if replicas and b % 7 == 0:  # seen again before our repair of it was written
        replicas[0] = [OURSELVES, *replicas[0][1:]]
    states = [state_of(slot, row) for row in known.tolist()]
    for number in range(len(replicas), min(len(replicas) + 1 + b % 3, 6)):
        ids = [BROKERS[(c + number + step) % 6] for step in range(1 + d % 3)]
        replicas.append([OURSELVES, *ids[1:]] if (c + d) % 5 == 0 else ids)
        led = [id_ for id_ in replicas[-1] if id_ != OURSELVES]
        states.append([led[0], 0, led, 0, 0, 0] if (b + c) % 4 == 0 and led else None)
    # What cannot be written keeps us in its lists, and its deletion waits for us for ever.
    ours = any(OURSELVES in ids for ids in replicas)
    unwritable = c % 16 == 5 and not ours and not author.plausible
    author.write(
        "topic_observed",
        topic,
        topic=topic,
        topic_id=topic_id_to_text(held.topic_id) if held is not None and c % 4 else None,
        new_topic_id=topic_id_to_text(bytes([c + 1] * 16)) if d % 2 else None,
        unclean=(None, None, True, False)[d % 4],
        min_insync_replicas=(None, 1, 2)[b % 3],
        partitions=list(range(len(replicas))),
        replicas=replicas,
        states=states,
        zk_version=len(replicas),
        observed_again=unwritable or (a + b) % 4 == 1,
        unwritable=unwritable,
    )


def remove_topic(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A topic's znode is gone, or is read again: what it holds follows, if it is still there."""
    topic = author.a_topic(a)
    held = author.slot().table.topic(topic)
    again = b % 2 == 0
    found = author.observation(topic) if held is not None and again else None
    author.write(
        "topic_removed",
        topic,
        topic=topic,
        topic_id=topic_id_to_text(held.topic_id) if held is not None and c % 2 else None,
        observed_again=again,
        unmarked=d % 8 == 0,
    )
    if not again:
        return
    if d % 3 == 0:
        author.change_brokers(c, d, a, b)
    if c % 4 == 1:  # somebody writes to the store meanwhile
        author.write("topic_deletion_requested", topic, topic=topic)
    elif c % 4 == 3:
        moved = {"request_id": None, "partitions": [0], "targets": [chosen(d)[:3]]}
        author.write("alter_reassignments_requested", topic, topic=topic, **moved)
    if found is None or d % 5 == 4:
        author.write("topic_removed", topic, topic=topic)
    else:
        author.write("topic_observed", topic, **found)


def mark_topic(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A topic is to be deleted: somebody asks us, or writes it to the store; or takes it back."""
    topic = author.a_topic(a)
    held = author.slot().table.topic(topic)
    topic_id = topic_id_to_text(bytes([9] * 16)) if c % 8 == 1 else None
    if held is not None and c % 8 > 4:
        topic_id = topic_id_to_text(held.topic_id)
    if held is not None and d % 8 == 7:
        kept = topic_id_to_text(held.topic_id) or topic_id_to_text(bytes([9] * 16))
        author.write("topic_deletion_withdrawn", topic, topic=topic, topic_id=kept)
    elif topic_id is not None and d % 4 == 0:
        author.ask("delete_topic_requested", "", topic_id=topic_id)
    elif b % 2:
        author.write("topic_deletion_requested", topic, topic=topic, topic_id=topic_id)
    else:
        author.ask("delete_topic_requested", topic, topic_id=topic_id)


def answer_deletions(author: Author, a: int, b: int, c: int, d: int) -> None:
    """Brokers answer for replicas that they delete, or say that they could not."""
    asked = [number for number in BROKERS if deleting(author.slot(), number)]
    for number in asked if d % 2 else asked[:1]:
        for topic, partitions in deleting(author.slot(), number).items():
            errors = [
                ProtocolError.KAFKA_STORAGE_ERROR if b >> partition & 1 and c % 8 == 0 else 0
                for partition in partitions
            ]
            author.write(
                "stop_replica_answered",
                topic,
                broker_id=number,
                broker_epoch=author.epoch_of(number) - (d % 16 == 0),
                topic=topic,
                partitions=partitions,
                errors=errors,
            )


def create_topic(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A client asks for a topic, mostly for one that is not there."""
    there = {topic.name for topic in author.slot().table.topics}
    topic = some_of([name for name in TOPICS if name not in there], TOPICS, a)
    configs = {"unclean.leader.election.enable": "true", "min.insync.replicas": str(1 + c % 2)}
    author.ask(
        "create_topic_requested",
        topic,
        topic_id=topic_id_to_text(bytes([a + 1] * 16)) if a % 4 else None,
        partitions=b % 5,
        replication_factor=c % 5,
        assignment={"0": chosen(c)[:3], "1": chosen(d)[:3]} if b % 4 == 1 else None,
        configs=configs if d % 5 == 0 else {},
        validate_only=d % 7 == 0,
        start_index=c,
        shift=d,
    )


def grow_topic(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A client asks for more partitions, mostly for one or two more than there are."""
    topic = author.a_topic(a)
    present = len(author.slot().table.rows_of(topic))
    author.ask(
        "create_partitions_requested",
        topic,
        partitions=present + 1 + c % 2 if b % 4 else b % 6,
        assignment=[[BROKERS[c % 6]], [BROKERS[d % 6]]] if d % 4 == 0 else None,
        validate_only=d % 7 == 0,
    )


def change_config(author: Author, a: int, b: int, c: int, d: int) -> None:
    """Settings change, for all topics or for one."""
    if a % 2:
        topic = author.a_topic(b)
        unclean, least = (True, False, None)[c % 3], (None, 1, 2)[d % 3]
        author.write(
            "topic_config_changed",
            topic,
            topic=topic,
            unclean=unclean,
            min_insync_replicas=least,
        )
    else:
        changed = {"unclean.leader.election.enable": bool(c % 2)} if b % 3 else {}
        if b % 2:
            changed["min.insync.replicas"] = 1 + d % 2
        if a % 4 == 0:
            changed["leader.deprioritized.list"] = ("", "2", "3,1")[d % 3]
        author.write("cluster_config_changed", config={**changed, "other": 1})


TOPIC_WEIGHTS = {
    observe_topic: 3,
    remove_topic: 1,
    mark_topic: 2,
    answer_deletions: 4,
    create_topic: 2,
    grow_topic: 2,
    change_config: 2,
}
