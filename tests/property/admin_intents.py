"""What administrators ask for in random logs: growth, elections, reassignments, our leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoints.machine_format import decode_machine
from state.cluster.authority import LEADER_REBALANCE_TIMER
from state.routing import CLUSTER_KEY
from streaming.sinks import reports
from tests.property.log_parts import BROKERS, TOPICS

if TYPE_CHECKING:
    from tests.property.state_logs import Author


def reassign(author: Author, a: int, b: int, c: int, d: int) -> None:
    """Two partitions are to move, or to go back; some of what is asked for makes no sense."""
    topic = TOPICS[a % len(TOPICS)]
    targets = [_target(author, c, d), _target(author, d, b)]
    author.write(
        "alter_reassignments_requested",
        topic,
        request_id=f"r{len(author.events)}" if b % 3 else None,
        topic=topic,
        partitions=[b % 3, 3 + b % 2],
        targets=targets,
    )


def _target(author: Author, number: int, turn: int) -> list[int] | None:
    if number % 6 == 0:
        return None
    ids = [broker for bit, broker in enumerate(BROKERS) if number >> bit & 1]
    if turn % 4:  # mostly what can be had: live brokers, in any order
        ids = [broker for broker in ids if broker in author.registered]
    return ids[turn % 3 :] + ids[: turn % 3]


def catch_up(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A leader takes all live replicas of its partition into the ISR: what ends reassignments."""
    slot = author.slot()
    rows = slot.table.rows
    moving = (rows.adding | rows.removing).any(axis=1).nonzero()[0].tolist()
    if not moving:
        return
    row = moving[a % len(moving)]
    topic = slot.table.topics[int(rows.topic[row])].name
    leader = int(rows.leader[row])
    live = [id_ for id_ in rows.replicas[row].tolist() if id_ in author.registered]
    author.write(
        "alter_partition_requested",
        topic,
        request_id=f"r{len(author.events)}",
        broker_id=leader,
        broker_epoch=author.registered.get(leader, 1),
        version=3,
        topic=topic,
        topic_id=None,
        partitions=[
            {
                "partition": int(rows.partition[row]),
                "leader_epoch": int(rows.leader_epoch[row]),
                "partition_epoch": int(rows.zk_version[row]),
                "isr": live,
            }
        ],
    )


def elect_leaders(author: Author, a: int, b: int, c: int, d: int) -> None:
    """Elections are asked for, of both types."""
    topic = TOPICS[a % len(TOPICS)]
    author.write(
        "elect_leaders_requested",
        topic,
        request_id=f"r{len(author.events)}" if b % 3 else None,
        topic=topic,
        election_type=("preferred", "unclean")[c % 2],
        partitions=[d % 3, 3, 70],
    )
    path = "/admin/preferred_replica_election"
    author.write("admin_znode_observed", path=path, zk_version=d)


def grow_topic(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A client asks for more partitions."""
    topic = TOPICS[a % len(TOPICS)]
    author.write(
        "create_partitions_requested",
        topic,
        request_id=f"r{len(author.events)}",
        topic=topic,
        partitions=b % 6,
        assignment=[[BROKERS[c % 6]], [BROKERS[d % 6]]] if d % 4 == 0 else None,
        validate_only=d % 7 == 0,
    )


def resign(author: Author, a: int, b: int, c: int, d: int) -> None:
    """We give the role up."""
    author.write("controller_resigned", reason="test")


def pause(author: Author, a: int, b: int, c: int, d: int) -> None:
    """An operator wants nothing decided, or wants it to go on, which leads to a load."""
    if a % 2:
        author.write("controller_paused", reason="test")
    else:
        author.write("controller_resumed", reason="test")
        author.elect(a, b, c, d)


def shut_down(author: Author, a: int, b: int, c: int, d: int) -> None:
    """A broker asks to be relieved of its leaders."""
    number = BROKERS[a % 6]
    epoch = author.registered.get(number, 5)
    author.checked = author.at_risk = None
    if c % 8 == 0:
        author.write("controlled_shutdown_allowed", broker_id=number)
    author.write(
        "controlled_shutdown_requested",
        request_id=f"r{len(author.events)}",
        broker_id=number,
        broker_epoch=(epoch, epoch, -1, epoch - 1)[b % 4],
        version=3,
    )
    if author.checked is not None:
        found = reports.checked_shutdown(author.checked, author.at_risk)
        author.write("controlled_shutdown_checked", **found)


def rebalance(author: Author, a: int, b: int, c: int, d: int) -> None:
    """The rebalance timer is due, and what the slots report comes back."""
    author.reported = author.proposals = None
    machine = decode_machine(author.states[CLUSTER_KEY]) if author.states else None
    timers = getattr(machine, "timers", {})
    deadline_ms = timers.get(LEADER_REBALANCE_TIMER, 5) + (a % 5 == 0)
    author.write("timer_due", timer=LEADER_REBALANCE_TIMER, deadline_ms=deadline_ms)
    if author.reported is not None:
        found = reports.imbalance(author.reported, author.proposals)
        author.write("leader_imbalance_reported", **found)


ADMIN_WEIGHTS = {
    reassign: 3,
    catch_up: 3,
    elect_leaders: 1,
    grow_topic: 1,
    resign: 1,
    pause: 1,
    shut_down: 2,
    rebalance: 1,
}
