"""What leaders, brokers and other controllers say about partitions in random logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from state.matrix import NONE, unpad
from state.partitions.slot import Slot
from state.protocol_errors import ProtocolError
from state.topic_ids import topic_id_to_text
from tests.logs.log_parts import BROKERS, state_of, written_by_another

if TYPE_CHECKING:
    from tests.logs.state_logs import Author

CAUSES = ("notification", "conflict", "read", "overtaken")
ONLY_OTHERS_DECIDE_AFTER = ("rejected", "adopted")
"""What is taken then may have a dead member in its ISR: nothing may be decided about it."""
ANSWERS = (
    ProtocolError.NONE,
    ProtocolError.NONE,
    ProtocolError.KAFKA_STORAGE_ERROR,
    ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
)
"""What a broker answers for its replicas, as often as it is listed."""


def _led_alike(slot: Slot, row: int) -> list[int]:
    """Return the rows of a row's topic that have its leader, that row first."""
    rows = slot.table.rows
    alike = (rows.topic == rows.topic[row]) & (rows.leader == rows.leader[row])
    return [row, *(other for other in np.flatnonzero(alike).tolist() if other != row)]


def _ask(
    author: Author, at: Sequence[int], isrs: Sequence[list[int]], sender: int, **other: Any
) -> None:
    """Ask for ISRs of rows of one topic, with the right epochs unless others are given."""
    rows, topics = author.slot().table.rows, author.slot().table.topics
    topic = topics[int(rows.topic[at[0]])]
    wrong = {name: other.pop(name, 0) for name in ("partition", "leader_epoch", "partition_epoch")}
    recovery = other.pop("recovery", 0)
    author.ask(
        "alter_partition_requested",
        topic.name,
        **{
            "broker_id": sender,
            "broker_epoch": author.epoch_of(sender),
            "version": 3,
            "topic_id": topic_id_to_text(topic.topic_id),
            "partitions": [
                {
                    "partition": int(rows.partition[row]) + wrong["partition"],
                    "leader_epoch": int(rows.leader_epoch[row]) + wrong["leader_epoch"],
                    "partition_epoch": int(rows.zk_version[row]) + wrong["partition_epoch"],
                    "recovery": recovery,
                    "isr": isr,
                }
                for row, isr in zip(at, isrs, strict=True)
            ],
            **other,
        },
    )


def alter_partition(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A leader changes ISRs of one topic, in two of three cases with nothing wrong about it; seldom
    somebody asks about a partition that has no leader.
    """
    slot = author.slot()
    rows = slot.table.rows
    asked = np.flatnonzero(rows.leader != NONE) if c % 8 else np.arange(len(rows))
    if not len(asked):
        return
    at = _led_alike(slot, int(asked[a % len(asked)]))[: 1 + b % 3]
    leader = int(rows.leader[at[0]])
    leader = BROKERS[b % 6] if leader == NONE else leader
    wrong = c // 8 if c % 3 == 0 else 0
    sender = BROKERS[d % 6] if wrong == 1 else leader
    _ask(
        author,
        at,
        [_isr(author, unpad(rows.replicas[row]), leader, b, d) for row in at],
        sender,
        broker_epoch=author.epoch_of(sender) - (wrong == 2),
        version=d % 4,
        partition=50 * (wrong == 3),
        leader_epoch=(wrong == 4) - (wrong == 5),
        partition_epoch=(wrong == 6) - (wrong == 7),
        recovery=d % 5 % 3 if d % 4 == 0 else 0,
    )


def _isr(author: Author, assigned: list[int], leader: int, b: int, d: int) -> list[int]:
    """Return the leader and some others that are live; with d of 7 modulo 8 any."""
    others = [id_ for id_ in assigned if id_ != leader and b >> assigned.index(id_) & 1]
    if d % 8 != 7:
        return [leader, *(id_ for id_ in others if id_ in author.registered)]
    return [*others, leader] if b % 2 else others


def ask_for_a_lost_topic(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A leader asks about a topic id that nobody knows."""
    sender = author.a_broker(a)
    author.write(
        "alter_partition_requested",
        request_id=author.request_id(),
        broker_id=sender,
        broker_epoch=author.epoch_of(sender) - (c % 4 == 0),
        version=2 + d % 2,
        topic="",
        topic_id=topic_id_to_text(bytes([200] * 16)),
        partitions=[
            {"partition": number, "leader_epoch": b, "partition_epoch": c, "isr": [sender]}
            for number in range(1 + b % 2)
        ],
    )


def catch_up(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A leader takes all live replicas of its partition into the ISR: what ends reassignments."""
    rows = author.slot().table.rows
    _take_all_in(author, (rows.adding | rows.removing).any(axis=1).nonzero()[0].tolist(), a)


def recover(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A leader takes all live replicas of its partitions into the ISRs, whoever was out of them."""
    rows = author.slot().table.rows
    lagging = (rows.leader != NONE) & ((rows.isr != NONE).sum(1) < (rows.replicas != NONE).sum(1))
    _take_all_in(author, lagging.nonzero()[0].tolist(), a, together=2)


def _take_all_in(author: Author, at: list[int], a: int, *, together: int = 1) -> None:
    if not at:
        return
    slot = author.slot()
    rows = slot.table.rows
    asked = _led_alike(slot, at[a % len(at)])[:together]
    live = [[id_ for id_ in unpad(rows.replicas[row]) if id_ in author.registered] for row in asked]
    leader = int(rows.leader[asked[0]])
    if leader != NONE:
        _ask(author, asked, live, leader)


def raise_leader_epochs(author: Author, a: int, b: int, c: int, d: int) -> None:
    """The announced leader of a topic's partitions needs leader epochs."""
    author.ask("raise_leader_epochs_requested", author.a_topic(a))


def lose_disk(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A broker announces a failed disk, and answers for its partitions of a topic."""
    topic = author.a_topic(b)
    slot = author.slot()
    rows, at = slot.table.rows, slot.table.rows_of(topic)
    hosts = sorted(set(rows.replicas[at].ravel().tolist()) & author.registered.keys())
    number = hosts[a % len(hosts)] if hosts else author.a_broker(a)
    at = at[(rows.replicas[at] == number).any(axis=1)]
    failed = (rows.offline_dir[at] & (rows.replicas[at] == number)).any(axis=1).tolist()
    errors = [ANSWERS[(c >> place) % 4] for place in range(len(at))]
    if author.plausible:  # what has failed stays so until the broker comes back
        errors = [
            ProtocolError.KAFKA_STORAGE_ERROR if lost else error
            for lost, error in zip(failed, errors, strict=True)
        ]
    author.write("log_dir_failure_notified", broker_ids=[number])
    author.write(
        "leader_and_isr_answered",
        topic,
        broker_id=number,
        broker_epoch=author.epoch_of(number) - (d % 16 == 0),
        topic=topic,
        partitions=[*rows.partition[at].tolist(), 90],
        errors=[*errors, ProtocolError.KAFKA_STORAGE_ERROR],
    )


def observe_states(author: Author, a: int, b: int, c: int, d: int) -> None:
    """State znodes were changed by their leader, or met by writes of ours, or are gone."""
    slot = author.slot()
    rows = slot.table.rows
    if not len(rows):
        return
    row = a % len(rows)
    at = np.flatnonzero(rows.topic == rows.topic[row]).tolist()
    seen = [row, *[other for other in at if other != row][: b % 3]]
    topic = slot.table.topics[int(rows.topic[row])].name
    causes = CAUSES if author.plausible else CAUSES + ONLY_OTHERS_DECIDE_AFTER
    gone, numbers = d % 11 == 0, [int(rows.partition[one]) for one in seen]
    author.write(
        "partition_states_observed",
        topic,
        topic=topic,
        cause=causes[c % len(causes)],
        partitions=[*numbers, 70],
        states=[*(None if gone else _changed(author, one, b, c, d) for one in seen), None],
        uncreated=numbers if d % 22 == 0 and not author.plausible else [],
    )


def _changed(author: Author, row: int, b: int, c: int, d: int) -> list[Any] | None:
    """Return a row's state as somebody has written it over ours."""
    slot = author.slot()
    found = state_of(slot, row)
    if found is None:
        return None
    if author.plausible:
        return written_by_another(found, unpad(slot.table.rows.replicas[row]), b, c, d)
    members = [member for member in found[2] if b >> found[2].index(member) & 1]
    found[2] = members or found[2]
    found[0] = found[2][c % len(found[2])] if c % 3 == 0 else found[0]
    found[1] += d % 2
    found[3] += c % 8 == 5
    found[5] += (1, 1, 2, 0)[d % 4]
    return found


PARTITION_WEIGHTS = {
    alter_partition: 6,
    ask_for_a_lost_topic: 1,
    catch_up: 3,
    recover: 3,
    raise_leader_epochs: 1,
    lose_disk: 2,
    observe_states: 3,
}
