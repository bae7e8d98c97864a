"""What administrators ask for in random logs: elections, reassignments, shutdowns, our leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from state.cluster.leader_rebalance import LEADER_REBALANCE_TIMER
from state.matrix import unpad_rows
from state.partitions.table import NO_LEADER
from streaming.sinks import reports
from tests.logs.log_parts import BROKERS

if TYPE_CHECKING:
    from tests.logs.state_logs import Author


def _partitions(author: Author, topic: str, first: int, count: int) -> list[int]:
    """Return some of a topic's partitions, and one that it has not for a first of 7 modulo 8."""
    slot = author.slot()
    there = slot.table.rows.partition[slot.table.rows_of(topic)].tolist()
    there = there[first % len(there) :] + there[: first % len(there)] if there else [0]
    return [*there[:count], *([80] if first % 8 == 7 else [])]


def reassign(author: Author, a: int, b: int, c: int, d: int) -> None:
    """Partitions are to move, or to go back; some of what is asked for makes no sense."""
    topic = author.a_topic(a)
    partitions = _partitions(author, topic, b, 1 + d % 3)
    author.write(
        "alter_reassignments_requested",
        topic,
        request_id=author.request_id() if b % 3 else None,
        topic=topic,
        partitions=partitions,
        targets=[_target(author, c + 5 * at, d + at) for at in range(len(partitions))],
    )
    if not b % 3 and c % 2:
        _end_of_request(author, "reassign_partitions", d)


def _target(author: Author, number: int, turn: int) -> list[int] | None:
    if number % 6 == 5:
        return None
    ids = [broker for bit, broker in enumerate(BROKERS) if number >> bit & 1]
    if turn % 8:  # mostly what can be had: live brokers, in any order
        ids = [broker for broker in ids if broker in author.registered][:3]
    return ids[turn % 3 :] + ids[: turn % 3]


def elect_leaders(author: Author, a: int, b: int, c: int, d: int) -> None:
    """Elections are asked for, of both types."""
    topic = author.a_topic(a)
    author.write(
        "elect_leaders_requested",
        topic,
        request_id=author.request_id() if b % 3 else None,
        topic=topic,
        election_type=("preferred", "unclean")[c % 2],
        partitions=(asked := _partitions(author, topic, d, 3)),
        logs=[[[a % 4, b % 3, c]] for _ in asked] if a % 4 == 3 else None,
    )
    if not b % 3:
        _end_of_request(author, "preferred_replica_election", d)


def _end_of_request(author: Author, name: str, zk_version: int) -> None:
    """All that a znode asks for was appended."""
    author.write("admin_znode_observed", path=f"/admin/{name}", zk_version=zk_version)


def resign(author: Author, a: int, b: int, c: int, d: int) -> None:
    """We give the role up."""
    author.write("controller_resigned", reason="test")


def pause(author: Author, a: int, b: int, c: int, d: int) -> None:
    """An operator wants nothing decided, or wants it to go on, which leads to a load."""
    if a % 2:
        author.write("controller_paused", reason="test")
        if b % 2:
            author.elect(a, b, c, d)
    else:
        author.write("controller_resumed", reason="test")
        author.elect(a, b, c, d)


def shut_down(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A broker asks to be relieved of its leaders."""
    number = author.a_broker(a)
    epoch = author.registered.get(number, 5)
    author.checked = author.at_risk = None
    if c % 8 == 0:
        author.write("controlled_shutdown_allowed", broker_id=number)
    author.write(
        "controlled_shutdown_requested",
        request_id=author.request_id(),
        broker_id=number,
        broker_epoch=(epoch, epoch, -1, epoch - (d % 2))[b % 4],
        version=3,
    )
    while author.checked is not None:
        found = reports.checked_shutdown(author.checked, author.at_risk)
        author.checked = author.at_risk = None
        if c % 4 == 1:  # somebody comes or goes before what was found comes back
            author.change_brokers(c, d, 0, 0)
            c = 0
        author.write("controlled_shutdown_checked", **found)


def rebalance(author: Author, a: int, b: int, c: int, d: int) -> None:
    """The rebalance timer is due, and what the slots report comes back."""
    author.reported = author.proposals = None
    deadline_ms = author.cluster().timers.get(LEADER_REBALANCE_TIMER, 5) + (a % 8 == 7)
    author.write("timer_due", timer=LEADER_REBALANCE_TIMER, deadline_ms=deadline_ms)
    if author.reported is not None:
        found = reports.imbalance(author.reported, author.proposals)
        author.write("leader_imbalance_reported", **found)


def report_log_ends(author: Author, a: int, b: int, c: int, d: int) -> None:
    """Replicas of a topic's partitions without a leader were asked where their logs end."""
    name = author.a_topic(a)
    rows, at = author.slot().table.rows, author.slot().table.rows_of(name)
    lost = at[rows.leader[at] == NO_LEADER]
    replicas = unpad_rows(rows.replicas[lost])
    author.write(
        "log_ends_reported",
        name,
        topic=name,
        partitions=rows.partition[lost].tolist(),
        leader_epochs=(rows.leader_epoch[lost] - (b % 8 == 7)).tolist(),
        logs=[[[one, (c + one) % 3, (d + one) % 5] for one in ids[b % 2 :]] for ids in replicas],
    )


ADMIN_WEIGHTS = {
    reassign: 4,
    elect_leaders: 2,
    resign: 1,
    pause: 1,
    shut_down: 3,
    rebalance: 2,
    report_log_ends: 2,
}
