"""One ordinary event of each kind, and a cluster that they are about."""

from __future__ import annotations

from typing import Any

from state.event_kinds import EventKind
from state.groups.buckets import group_bucket, timer_name
from tests.fixtures.states import stored

Body = dict[str, Any]

_ID = "xVg7K6qyTvmxpuD7RnqU_w"
_ASKED: Body = {"request_id": "r", "broker_id": 1, "broker_epoch": 10, "version": 3}
_STATE = stored(1, [1, 2, 3], leader_epoch=3, controller_epoch=1, zk_version=4)
_SHRUNK = stored(1, [1, 2], leader_epoch=4, controller_epoch=1, zk_version=5)
_LOGS = [[[1, 2, 70], [2, 3, 60]], []]
_ELECTIONS: Body = {"request_id": "r", "topic": "t", "partitions": [0, 1]}
_TOKEN: Body = {"token_id": "t", "owner": "User:a", "expired_at_ms": 9, "zk_version": 2}
_GROUP = "g"
_OF_GROUP: Body = {"partition": 4, "group": _GROUP}
_REQUEST: Body = {"request_id": "r", "version": 5, **_OF_GROUP}
_TIMER = timer_name(group_bucket(_GROUP))
_ROW = ["t", 0, 7, 1, "m", 900, None, 3]
_MEMBER: Body = {
    "member": "c-1",
    "instance": "i",
    "client": "c",
    "host": "h",
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 20_000,
    "metadata": "AAAAAAAA",
    "assignment": "",
}


def _broker(number: int, epoch: int) -> Body:
    ends = {"listener": "P", "host": "h", "port": 9092, "security_protocol": 0}
    return {"id": number, "epoch": epoch, "rack": "a", "endpoints": [ends]}


def _elected(epoch: int) -> Body:
    return {
        "controller_id": 1000,
        "epoch": epoch,
        "epoch_zk_version": epoch,
        "endpoints": [],
        "config": {
            "unclean.leader.election.enable": False,
            "leader.imbalance.per.broker.percentage": 10,
            "leader.imbalance.check.interval.ms": 300_000,
            "leader.rebalance.partitions.max": 200,
            "leader.rebalance.step.interval.ms": 1_000,
            "min.insync.replicas": 1,
            "controlled.shutdown.safety.check.enable": True,
        },
    }


def _topic(name: str, states: list[Any] | None, **more: Any) -> Body:
    return {
        "topic": name,
        "topic_id": _ID,
        "unclean": None,
        "min_insync_replicas": 2,
        "zk_version": 1,
        "partitions": [0, 1],
        "replicas": [[1, 2, 3], [2, 3, 1]],
        "states": states,
        **more,
    }


CLUSTER: tuple[tuple[str, str, Body], ...] = (
    (EventKind.CONTROLLER_ELECTED, "", _elected(1)),
    (
        EventKind.BROKER_REGISTRATIONS_CHANGED,
        "",
        {"registered": [_broker(number, number * 10) for number in (1, 2, 3)]},
    ),
    (
        EventKind.TOPIC_OBSERVED,
        "t",
        _topic("t", [_STATE, stored(2, [2, 3], leader_epoch=3, controller_epoch=1, zk_version=1)]),
    ),
    (
        EventKind.PRODUCER_ID_BLOCK_OBSERVED,
        "",
        {"block_end": -1, "zk_version": 0},
    ),
    (EventKind.RESYNC_COMPLETED, "", {"topics": 1}),
    (
        EventKind.GROUP_COORDINATOR_CONFIGURED,
        "",
        {
            "config": {
                "group.min.session.timeout.ms": 1,
                "group.max.session.timeout.ms": 60_000,
                "group.max.size": 10,
                "group.initial.rebalance.delay.ms": 0,
                "offset.metadata.max.bytes": 4_096,
                "offsets.retention.ms": 60_000,
            }
        },
    ),
    (EventKind.GROUP_PARTITIONS_ELECTED, "", {"partitions": [4], "epoch": 1}),
    (EventKind.GROUP_PARTITIONS_LOADED, "", {"partitions": [4], "epoch": 1}),
)
"""What comes first: topic t on brokers 1 to 3, and the coordination of all groups."""

EXAMPLES: dict[EventKind, list[tuple[str, Body]]] = {
    EventKind.CONTROLLER_ELECTED: [("", _elected(2))],
    EventKind.CONTROLLER_RESIGNED: [("", {"reason": "x"})],
    EventKind.CONTROLLER_PAUSED: [("", {"reason": "x"})],
    EventKind.CONTROLLER_RESUMED: [("", {"reason": "x"})],
    EventKind.BROKER_REGISTRATIONS_CHANGED: [
        (
            "",
            {
                "registered": [_broker(4, 40)],
                "unregistered": [2],
                "bounced": [_broker(3, 31)],
                "updated": [_broker(1, 10)],
            },
        )
    ],
    EventKind.RESYNC_COMPLETED: [("", {"topics": 1})],
    EventKind.CLUSTER_CONFIG_CHANGED: [
        ("", {"config": {"min.insync.replicas": 3, "leader.deprioritized.list": "2"}})
    ],
    EventKind.TOPIC_OBSERVED: [
        ("t", _topic("t", [_SHRUNK, None])),
        ("n", _topic("n", None, topic_id=None, new_topic_id=_ID, adding=[[3], []])),
        ("n", _topic("n", [_STATE, _STATE], removing=[[1], []], unwritable=False)),
        ("t", _topic("t", [_STATE, None], observed_again=True)),
    ],
    EventKind.TOPIC_REMOVED: [("t", {"topic": "t", "topic_id": None, "observed_again": False})],
    EventKind.TOPIC_CONFIG_CHANGED: [
        ("t", {"topic": "t", "unclean": True, "min_insync_replicas": 3})
    ],
    EventKind.PARTITION_STATES_OBSERVED: [
        (
            "t",
            {
                "topic": "t",
                "cause": "conflict",
                "partitions": [0, 1],
                "states": [_SHRUNK, None],
                "uncreated": [1],
            },
        )
    ],
    EventKind.CREATE_TOPIC_REQUESTED: [
        (
            "c",
            {
                "request_id": "r",
                "topic": "c",
                "topic_id": _ID,
                "partitions": 3,
                "replication_factor": 2,
                "assignment": assignment,
                "configs": {"min.insync.replicas": "2"},
                "validate_only": False,
                "start_index": 5,
                "shift": 7,
            },
        )
        for assignment in (None, {"0": [1, 2], "1": [2, 3]})
    ],
    EventKind.CREATE_PARTITIONS_REQUESTED: [
        (
            "t",
            {
                "request_id": "r",
                "topic": "t",
                "partitions": 4,
                "assignment": assignment,
                "validate_only": False,
            },
        )
        for assignment in (None, [[1, 2, 3], [2, 3, 1]])
    ],
    EventKind.TOPIC_DELETION_REQUESTED: [("t", {"topic": "t", "topic_id": _ID})],
    EventKind.TOPIC_DELETION_WITHDRAWN: [("t", {"topic": "t", "topic_id": _ID})],
    EventKind.DELETE_TOPIC_REQUESTED: [
        ("t", {"request_id": "r", "topic": "t", "topic_id": None}),
        ("", {"request_id": "r", "topic": "", "topic_id": _ID}),
    ],
    EventKind.STOP_REPLICA_ANSWERED: [
        (
            "t",
            {
                "broker_id": 1,
                "broker_epoch": 10,
                "topic": "t",
                "partitions": [0, 1],
                "errors": [0, 3],
            },
        )
    ],
    EventKind.LEADER_AND_ISR_ANSWERED: [
        (
            "t",
            {
                "broker_id": 1,
                "broker_epoch": 10,
                "topic": "t",
                "partitions": [0, 1],
                "errors": [0, 56],
            },
        )
    ],
    EventKind.ALTER_PARTITION_REQUESTED: [
        (
            "t",
            {
                **_ASKED,
                "topic": "t",
                "topic_id": _ID,
                "partitions": [
                    {
                        "partition": 0,
                        "leader_epoch": 3,
                        "partition_epoch": 4,
                        "recovery": 0,
                        "isr": [1, 2],
                    }
                ],
            },
        )
    ],
    EventKind.CONTROLLED_SHUTDOWN_REQUESTED: [("", _ASKED)],
    EventKind.CONTROLLED_SHUTDOWN_CHECKED: [
        ("", {**_ASKED, "live": [1, 2, 3], "at_risk": [["t", 0]]})
    ],
    EventKind.CONTROLLED_SHUTDOWN_ALLOWED: [("", {"broker_id": 1})],
    EventKind.LOG_DIR_FAILURE_NOTIFIED: [("", {"broker_ids": [1, 2]})],
    EventKind.PRODUCER_IDS_REQUESTED: [
        ("", {"request_id": "r", "broker_id": 1, "broker_epoch": 10})
    ],
    EventKind.PRODUCER_ID_BLOCK_OBSERVED: [("", {"block_end": 999, "zk_version": 3})],
    EventKind.TIMER_DUE: [("", {"timer": "leader_rebalance", "deadline_ms": 1_000})],
    EventKind.LEADER_IMBALANCE_REPORTED: [
        ("", {"preferred": {"1": 5}, "imbalanced": {"1": 3}, "proposals": [["t", 0, 1]]})
    ],
    EventKind.LOG_ENDS_REPORTED: [
        ("t", {"topic": "t", "partitions": [0, 1], "leader_epochs": [3, 4], "logs": _LOGS})
    ],
    EventKind.ELECT_LEADERS_REQUESTED: [
        ("t", {**_ELECTIONS, "election_type": "preferred"}),
        ("t", {**_ELECTIONS, "election_type": "unclean", "logs": _LOGS}),
    ],
    EventKind.ALTER_REASSIGNMENTS_REQUESTED: [
        (
            "t",
            {
                "request_id": request,
                "topic": "t",
                "partitions": [0, 1],
                "targets": [[1, 2], None],
            },
        )
        for request in ("r", None)
    ],
    EventKind.ADMIN_ZNODE_OBSERVED: [
        ("", {"path": "/admin/preferred_replica_election", "zk_version": 0})
    ],
    EventKind.DELEGATION_TOKENS_EXPIRED: [("", {"tokens": [_TOKEN]})],
    EventKind.RAISE_LEADER_EPOCHS_REQUESTED: [("t", {"request_id": "r", "topic": "t"})],
    EventKind.JOIN_GROUP_REQUESTED: [
        (
            _GROUP,
            {
                **_REQUEST,
                "member": "",
                "new_member": "c-1",
                "instance": "i",
                "client": "c",
                "host": "h",
                "session_timeout_ms": 10_000,
                "rebalance_timeout_ms": 20_000,
                "protocol_type": "consumer",
                "protocols": [["range", "AAAAAAAA"]],
                "reason": "x",
            },
        )
    ],
    EventKind.SYNC_GROUP_REQUESTED: [
        (
            _GROUP,
            {
                **_REQUEST,
                "generation": 1,
                "member": "c-1",
                "instance": None,
                "protocol_type": "consumer",
                "protocol": "range",
                "assignments": [["c-1", ""]],
            },
        )
    ],
    EventKind.LEAVE_GROUP_REQUESTED: [
        (_GROUP, {**_REQUEST, "members": [{"member": "c-1", "instance": None, "reason": "x"}]})
    ],
    EventKind.OFFSET_COMMIT_REQUESTED: [
        (
            _GROUP,
            {
                **_REQUEST,
                "member": "",
                "instance": None,
                "generation": -1,
                "retention_ms": 50,
                "offsets": [["t", 0, 7, 1, "m"]],
            },
        )
    ],
    EventKind.TXN_OFFSET_COMMIT_REQUESTED: [
        (
            _GROUP,
            {
                **_REQUEST,
                "producer_id": 5,
                "producer_epoch": 0,
                "member": "",
                "instance": None,
                "generation": -1,
                "verification_error": 0,
                "offsets": [["t", 0, 7, 1, "m"]],
            },
        )
    ],
    EventKind.OFFSETS_APPENDED: [(_GROUP, {**_OF_GROUP, "offsets": [["t", 0, 7, 1, "m", 900]]})],
    EventKind.ASSIGNMENT_APPENDED: [
        (_GROUP, {**_OF_GROUP, "generation": 1, "assignments": [["c-1", ""]]})
    ],
    EventKind.COMMITTED_TOPICS_DELETED: [(_GROUP, {**_OF_GROUP, "topics": ["t"]})],
    EventKind.OFFSET_DELETE_REQUESTED: [(_GROUP, {**_REQUEST, "partitions": [["t", 0]]})],
    EventKind.DELETE_GROUP_REQUESTED: [(_GROUP, _REQUEST)],
    EventKind.GROUP_OBSERVED: [
        (
            _GROUP,
            {
                **_OF_GROUP,
                "epoch": 1,
                "metadata": {
                    "generation": 3,
                    "protocol_type": "consumer",
                    "protocol": "range",
                    "leader": "c-1",
                    "state_since_ms": 800,
                    "members": [_MEMBER],
                },
                "offsets": [_ROW],
                "pending": [[5, [_ROW]]],
            },
        )
    ],
    EventKind.GROUP_RECORDS_REFUSED: [
        (
            _GROUP,
            {
                **_OF_GROUP,
                "write": [9, 0],
                "error": 15,
                "replies": [{"request_id": "r", "error": 0, "partitions": [["t", 0, 0]]}],
                "undo": None,
                "offsets": [["t", 0, _ROW], ["t", 1, None]],
            },
        )
    ],
    EventKind.GROUP_RECORDS_OVERTAKEN: [
        (_GROUP, {**_OF_GROUP, "write": [9, 0], "producer_id": 5, "offsets": [_ROW]})
    ],
    EventKind.HEARTBEATS_RECEIVED: [
        (
            str(group_bucket(_GROUP)),
            {"heartbeats": [[_GROUP, "c-1", None, 1, 100]], "synced": [[_GROUP, 1, ["c-1"]]]},
        )
    ],
    EventKind.GROUP_TIMER_DUE: [
        (str(group_bucket(_GROUP)), {"timer": _TIMER, "deadline_ms": 2_000})
    ],
    EventKind.OFFSETS_EXPIRATION_DUE: [(str(group_bucket(_GROUP)), {})],
    EventKind.GROUP_COORDINATOR_CONFIGURED: [
        ("", {"config": {"group.max.size": 10, "offsets.retention.ms": 5}})
    ],
    EventKind.GROUP_PARTITIONS_ELECTED: [("", {"partitions": [4, 5], "epoch": 2})],
    EventKind.GROUP_PARTITIONS_LOADED: [("", {"partitions": [4, 5], "epoch": 2})],
    EventKind.GROUP_PARTITIONS_RESIGNED: [
        ("", {"partitions": [4, 5], "epoch": 2, "unheard": False, "every": False})
    ],
    EventKind.TRANSACTION_COMPLETED: [
        ("", {"producer_id": 5, "committed": True, "partitions": [4]})
    ],
}
"""Ordinary events by kind, as (key, body)."""
