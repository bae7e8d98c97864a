"""Rows of the slots' tables from the partitions in `given`."""

from __future__ import annotations

from typing import Any

import numpy as np

from state.matrix import pad_rows
from state.partitions.legal import PartitionState, ReplicaState
from state.partitions.slot import Slot
from state.partitions.table import Columns, PartitionTable, Topic
from state.topic_ids import topic_id_from_text
from tests.conformance import names
from tests.conformance.load import Scenario


def add_topic(table: PartitionTable, scenario: Scenario, topic: str, body: dict[str, Any]) -> None:
    config = body.get("config", {})
    unclean = config.get("unclean.leader.election.enable")
    index = table.add_topic(
        Topic(
            topic,
            topic_id_from_text(names.topic_id(body.get("topic_id"))),
            None if unclean is None else str(unclean).lower() == "true",
            zk_version=0,
        )
    )
    numbers = sorted(map(int, body["partitions"]))
    rows = [body["partitions"][str(number)] for number in numbers]
    mentioned = _mentioned_replicas(scenario)
    replicas = [
        [*row.get("replicas", []), *_strangers(row, mentioned.get((topic, number), []))]
        for number, row in zip(numbers, rows, strict=True)
    ]
    table.add_rows(_columns(index, numbers, rows, replicas))


def _strangers(row: dict[str, Any], mentioned: list[int]) -> list[int]:
    """Return replicas with a state, or about to get one, that are not in the assignment.

    Kafka's tests give a replica a state without assigning it; here a replica's state is a cell of
    its assignment, so it is assigned.
    """
    named = [*map(int, row.get("replica_states", {})), *mentioned]
    return [broker for broker in dict.fromkeys(named) if broker not in row.get("replicas", [])]


def _mentioned_replicas(scenario: Scenario) -> dict[tuple[str, int], list[int]]:
    mentioned: dict[tuple[str, int], list[int]] = {}
    for event in scenario.when:
        if event["event"] == "replica_transition":
            for topic, partition, broker in event["replicas"]:
                mentioned.setdefault((topic, partition), []).append(broker)
    return mentioned


def _columns(
    topic: int, numbers: list[int], rows: list[dict[str, Any]], replicas: list[list[int]]
) -> Columns:
    def ints(name: str, absent: int) -> np.ndarray:
        stored = [row.get("leader") is not None for row in rows]
        values = [
            row.get(name, 0) if has else absent for row, has in zip(rows, stored, strict=True)
        ]
        return np.array(values, dtype=np.int32)

    padded = pad_rows(replicas)
    in_motion = {
        name: np.array(
            [
                [b in row.get(name, []) for b in line]
                for row, line in zip(rows, padded, strict=True)
            ],
            dtype=bool,
        ).reshape(padded.shape)
        for name in ("adding", "removing")
    }
    states = [names.partition_state(row.get("state", "NonExistent")) for row in rows]
    return Columns(
        topic=np.full(len(rows), topic, dtype=np.int32),
        partition=np.array(numbers, dtype=np.int32),
        replicas=padded,
        isr=pad_rows([row.get("isr") or [-1] for row in rows]),
        leader=ints("leader", -1),
        leader_epoch=ints("leader_epoch", -1),
        zk_version=ints("zk_version", -1),
        controller_epoch=ints("controller_epoch", -1),
        recovery=ints("leader_recovery_state", 0).astype(np.int8),
        state=np.array(states, dtype=np.int8),
        replica_state=_replica_states(rows, replicas, padded.shape),
        offline_dir=np.zeros(padded.shape, dtype=bool),
        **in_motion,
    )


_UNSAID = -1


def _replica_states(
    rows: list[dict[str, Any]], replicas: list[list[int]], shape: tuple[int, ...]
) -> np.ndarray:
    states = np.zeros(shape, dtype=np.int8)
    for at, (row, brokers) in enumerate(zip(rows, replicas, strict=True)):
        for column, broker in enumerate(brokers):
            if "replica_states" not in row:
                states[at, column] = _UNSAID
            elif (name := row["replica_states"].get(str(broker))) is not None:
                states[at, column] = names.replica_state(name)
    return states


def set_replica_states(slot: Slot, given: dict[str, Any]) -> None:
    """Mark failed disks, and give replicas of which nothing is said the state they would have."""
    rows = slot.table.rows
    for broker, topic, partition in given.get("offline_dirs", []):
        for at in slot.table.find(topic, np.array([partition], dtype=np.int32)):
            if at >= 0:
                rows.offline_dir[at] |= rows.replicas[at] == broker
    at = np.arange(len(rows))
    usual = np.where(slot.online_replicas(at), ReplicaState.ONLINE, ReplicaState.OFFLINE)
    by_state = {PartitionState.NON_EXISTENT: 0, PartitionState.NEW: int(ReplicaState.NEW)}
    for state, replica_state in by_state.items():
        usual[rows.state == state] = replica_state
    unsaid = (rows.replica_state == _UNSAID) & (rows.replicas >= 0)
    rows.replica_state[:] = np.where(unsaid, usual, np.maximum(rows.replica_state, 0))
