"""Decisions as lines of a broker's `state-change.log`, for who searches or watches such files.

Lines are those of the logger `state.change.logger` of Kafka 3.9's controller, laid out as the
`log4j.properties` of its distribution have it. Of what that logs only changes of state are here:
what was sent to brokers is in the outcome log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from state.bodies import UpdateBrokers
from state.decisions import Action, DecisionKind, Rule
from state.matrix import NONE
from state.opened_decisions import open_rows
from streaming.log.api import LogRecord

_LOGGER = "state.change.logger"
_PARTITION_STATES: Mapping[str, str] = {
    "non_existent": "NonExistentPartition",
    "new": "NewPartition",
    "online": "OnlinePartition",
    "offline": "OfflinePartition",
}
_REPLICA_STATES: Mapping[str, str] = {
    "non_existent": "NonExistentReplica",
    "new": "NewReplica",
    "online": "OnlineReplica",
    "offline": "OfflineReplica",
    "deletion_started": "ReplicaDeletionStarted",
    "deletion_successful": "ReplicaDeletionSuccessful",
    "deletion_ineligible": "ReplicaDeletionIneligible",
}
_NON_EXISTENT, _NEW, _ONLINE, _OFFLINE = _PARTITION_STATES.values()
_RECOVERY = ("RECOVERED", "RECOVERING")
_WRITTEN = Action.WRITE.name.lower()
_CREATED = Action.CREATE.name.lower()
_DELETED = Action.DELETED.name.lower()
_ELECTED_FROM: Mapping[str, str] = {
    Rule.OFFLINE_PARTITION_ELECTED.name.lower(): _OFFLINE,
    Rule.UNCLEAN_ELECTED.name.lower(): _OFFLINE,
    Rule.REASSIGNED_PARTITION_ELECTED.name.lower(): _ONLINE,
    Rule.PREFERRED_REPLICA_ELECTED.name.lower(): _ONLINE,
    Rule.CONTROLLED_SHUTDOWN_ELECTED.name.lower(): _ONLINE,
}
"""The state that Kafka's controller elects in, by the rule; a new partition is created elected."""


class StateChangeLog:
    """Makes lines of decisions in the order of their log."""

    def __init__(self, controller_id: int) -> None:
        """Begin at some place of a log.

        controller_id: who decides, until the log says so (`update_brokers`).
        """
        self._controller_id = controller_id
        self._epoch: int | None = None

    def lines(self, record: LogRecord) -> Iterator[str]:
        """Yield the lines of a decision, of most kinds none.

        Raises CorruptBlock, ValueError or LookupError when the payload cannot be opened.
        """
        kind = record.kind
        if kind == DecisionKind.UPDATE_BROKERS:
            self._follow(orjson.loads(record.payload))
        elif kind == DecisionKind.CHANGE_PARTITIONS:
            for row in open_rows(kind, record.payload):
                if _WRITTEN in row["actions"]:
                    self._epoch = row["controller_epoch"]
                yield from (self.line(record, *said) for said in _changes(row))
        elif kind == DecisionKind.REFUSE_TRANSITION:
            for row in open_rows(kind, record.payload):
                yield self.line(record, "ERROR", self._refusal(row))

    def _follow(self, brokers: UpdateBrokers) -> None:
        self._controller_id = brokers["controller_id"]
        self._epoch = brokers["controller_epoch"]

    def line(self, record: LogRecord, level: str, text: str) -> str:
        """Lay a line about a decision out; its time is that of the event, where this runs."""
        at = datetime.fromtimestamp(record.time_ms // 1000, UTC).astimezone()
        time = f"{at:%Y-%m-%d %H:%M:%S},{record.time_ms % 1000:03}"
        epoch = "" if self._epoch is None else f" epoch={self._epoch}"
        return f"[{time}] {level} [Controller id={self._controller_id}{epoch}] {text} ({_LOGGER})"

    def _refusal(self, row: Mapping[str, Any]) -> str:
        """Return what Kafka's controller says of a move that failed, and our reason behind it."""
        who = f"Controller {self._controller_id} epoch {self._epoch}"
        partition, reason = _partition(row), row["reason"]
        if row["replica"] == NONE:
            move = _move(_PARTITION_STATES, row)
            return f"{who} failed to change state for partition {partition} {move}: {reason}"
        move = _move(_REPLICA_STATES, row)
        return (
            f"{who} initiated state change of replica {row['replica']} for partition {partition}"
            f" {move} failed: {reason}"
        )


def _partition(row: Mapping[str, Any]) -> str:
    return f"{row['topic']}-{row['partition']}"


def _move(names: Mapping[str, str], row: Mapping[str, Any]) -> str:
    return f"from {names[row['current']]} to {names[row['target']]}"


def _changes(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return levels and texts of what became of a partition: of an ISR that changed, nothing."""
    partition, had_leader = _partition(row), row["leader_before"] != NONE
    if _DELETED in row["actions"]:
        return [
            _moved(partition, _ONLINE if had_leader else _OFFLINE, _OFFLINE),
            _moved(partition, _OFFLINE, _NON_EXISTENT),
        ]
    if _CREATED in row["actions"]:
        replicas = ",".join(map(str, row["replicas"]))
        made = f"from {_NON_EXISTENT} to {_NEW} with assigned replicas {replicas}"
        return [("INFO", f"Changed partition {partition} state {made}"), _elected(row, _NEW)]
    if row["leader"] == NONE:
        return [_moved(partition, _ONLINE, _OFFLINE)] if had_leader else []
    elected_in = _ELECTED_FROM.get(row["rule"])
    return [] if elected_in is None else [_elected(row, elected_in if had_leader else _OFFLINE)]


def _moved(partition: str, from_: str, to: str) -> tuple[str, str]:
    return "TRACE", f"Changed partition {partition} state from {from_} to {to}"


def _elected(row: Mapping[str, Any], from_: str) -> tuple[str, str]:
    isr = ", ".join(f"BrokerState(brokerId={one}, brokerEpoch=-1)" for one in row["isr"])
    state = (
        f"LeaderAndIsr(leader={row['leader']}, leaderEpoch={row['leader_epoch']},"
        f" isrWithBrokerEpoch=List({isr}), leaderRecoveryState={_RECOVERY[row['recovery']]},"
        f" partitionEpoch={row['partition_epoch']})"
    )
    return (
        "INFO",
        f"Changed partition {_partition(row)} from {from_} to {_ONLINE} with state {state}",
    )
