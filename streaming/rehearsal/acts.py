"""What the steps of a rehearsal are for the machines: the events that tell of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from state.decisions import DecisionKind
from state.event_kinds import EventKind
from state.matrix import NONE, any_in_row, contains
from state.partitions.slot import Slot
from state.payloads.brokers import BrokerRegistration
from state.topic_partition import TopicPartition
from streaming.errors import ConfigurationError
from streaming.log.api import NewRecord
from streaming.log.events import event
from streaming.rehearsal.cluster_copy import ClusterCopy
from streaming.rehearsal.steps import Step, StepKind
from streaming.sinks.reports import places

_REQUEST_ID = "rehearsal"
_SHUTDOWN_VERSION = 3
_ALTER_PARTITION_VERSION = 3


class Acts:
    """Carries out steps on a copy of a cluster; what is known of brokers outlives them."""

    def __init__(self, copy: ClusterCopy) -> None:
        """Take the copy."""
        self._copy = copy
        self._known = dict(copy.cluster.brokers.by_id)
        for slot in copy.slots:
            replicas = slot.table.rows.replicas
            for id_ in np.unique(replicas[replicas != NONE]).tolist():
                self._known.setdefault(id_, BrokerRegistration(id_, 0, None, ()))

    def carry_out(self, step: Step) -> dict[int, list[TopicPartition]]:
        """Let a step happen; return the brokers that may not stop, and of each the partitions that
        would fall below min.insync.replicas. Raises ConfigurationError when it cannot happen.
        """
        brokers = self._brokers(step)
        match step.kind:
            case StepKind.KILL:
                self._gone(brokers)
            case StepKind.STOP:
                refused = {broker: self._stop(broker) for broker in brokers}
                return {broker: at_risk for broker, at_risk in refused.items() if at_risk}
            case StepKind.START:
                self._come(brokers)
                if caught_up := self._caught_up(brokers):
                    self._copy.happens(*caught_up)
        return {}

    def _brokers(self, step: Step) -> list[int]:
        """Return which brokers a step is about."""
        running = self._copy.cluster.brokers.by_id.keys()
        starts = step.kind is StepKind.START
        for broker in step.brokers:
            if broker not in self._known:
                _refuse(step, f"nothing is known of broker {broker}", running)
            if (broker in running) == starts:
                _refuse(step, f"broker {broker} runs {'already' if starts else 'no more'}", running)
        brokers = dict.fromkeys(step.brokers)
        for rack in step.racks:
            inside = [id_ for id_, one in sorted(self._known.items()) if one.rack == rack]
            meant = [id_ for id_ in inside if (id_ in running) != starts]
            if not meant:
                _refuse(step, f"no broker of rack {rack!r} is {'off' if starts else 'on'}", running)
            brokers |= dict.fromkeys(meant)
        return [*brokers]

    def _gone(self, brokers: Iterable[int]) -> None:
        self._copy.happens(_registrations(unregistered=[*brokers]))

    def _stop(self, broker: int) -> list[TopicPartition]:
        body = {
            "request_id": _REQUEST_ID,
            "broker_id": broker,
            "broker_epoch": self._copy.cluster.brokers.epoch(broker),
            "version": _SHUTDOWN_VERSION,
        }
        decisions = self._copy.happens(event(EventKind.CONTROLLED_SHUTDOWN_REQUESTED, body))
        at_risk = [one for one in decisions if one.kind is DecisionKind.REPORT_AT_RISK]
        if not at_risk:
            self._gone([broker])
        return [(topic, partition) for one in at_risk for topic, partition in places(one)]

    def _come(self, brokers: Iterable[int]) -> None:
        later = 1 + max(one.epoch for one in self._known.values())
        registered = []
        for epoch, broker in enumerate(brokers, later):
            before = self._known[broker]
            self._known[broker] = BrokerRegistration(broker, epoch, before.rack, before.endpoints)
            registered.append(
                {
                    "id": broker,
                    "epoch": epoch,
                    "rack": before.rack,
                    "endpoints": before.endpoints,
                }
            )
        self._copy.happens(_registrations(registered=registered))

    def _caught_up(self, brokers: Iterable[int]) -> list[NewRecord]:
        """Return what leaders ask for once the replicas on these brokers have all their records."""
        by_topic: dict[str, list[NewRecord]] = {}
        for slot in self._copy.slots:
            for (topic, leader), partitions in _grown_isrs(slot, brokers).items():
                body = {
                    "request_id": _REQUEST_ID,
                    "broker_id": leader,
                    "broker_epoch": slot.brokers.epoch(leader),
                    "version": _ALTER_PARTITION_VERSION,
                    "topic": topic,
                    "partitions": partitions,
                }
                asked = event(EventKind.ALTER_PARTITION_REQUESTED, body, topic)
                by_topic.setdefault(topic, []).append(asked)
        # Requests about different topics that follow one another are folded together.
        rounds = chain.from_iterable(zip_longest(*by_topic.values()))
        return [one for one in rounds if one is not None]


def _grown_isrs(slot: Slot, brokers: Iterable[int]) -> dict[TopicPartition, list[dict[str, Any]]]:
    """Return by topic and leader the partitions whose replicas on these brokers are not in sync."""
    rows, every = slot.table.rows, np.arange(len(slot.table.rows))
    behind = slot.hosted_by(brokers) & slot.online_replicas(every)
    behind &= ~contains(rows.isr, rows.replicas)
    found: dict[TopicPartition, list[dict[str, Any]]] = {}
    for row in np.flatnonzero(any_in_row(behind) & rows.has_state & slot.is_led(every)):
        in_sync = [*rows.isr[row][rows.isr[row] != NONE].tolist()]
        asked = {
            "partition": int(rows.partition[row]),
            "leader_epoch": int(rows.leader_epoch[row]),
            "partition_epoch": int(rows.zk_version[row]),
            "isr": in_sync + rows.replicas[row][behind[row]].tolist(),
        }
        topic = slot.table.topics[rows.topic[row]].name
        found.setdefault((topic, int(rows.leader[row])), []).append(asked)
    return found


def _registrations(**changed: list[Any]) -> NewRecord:
    return event(EventKind.BROKER_REGISTRATIONS_CHANGED, changed)


def _refuse(step: Step, why: str, running: Iterable[int]) -> None:
    ids = ", ".join(map(str, sorted(running))) or "none"
    raise ConfigurationError(f"step {step}: {why}; running are {ids}")
