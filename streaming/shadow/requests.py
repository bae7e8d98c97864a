"""The events that guesses become: what the live controller was asked, asked of our machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any

from state.event_kinds import EventKind
from state.payloads.partitions import StateCause
from state.protocol_errors import ProtocolError
from streaming.log.api import NewRecord
from streaming.log.events import event
from streaming.shadow.guesses import Ask, AskKind
from streaming.shadow.leadership import to_state

_NOT_STATED = -1
_NEWEST = 3

_ORDER = list(AskKind)
_CAUSES = {
    AskKind.WRITE_ISR: StateCause.NOTIFICATION,
    AskKind.OVERTAKEN: StateCause.OVERTAKEN,
    AskKind.ADOPT: StateCause.ADOPTED,
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """Guesses of one kind about one topic and broker, that become one event."""

    topic: str
    broker: int
    asks: Sequence[Ask]
    broker_epoch: int
    controller_epoch: int

    @property
    def partitions(self) -> list[int]:
        return [ask.subject[1] for ask in self.asks]


class Requests:
    """Makes events out of guesses; each has an id by which its reply is known again."""

    def __init__(self) -> None:
        """Start with no request made."""
        self._numbers = count()

    def of(
        self, asks: Iterable[Ask], brokers: Mapping[int, int], controller_epoch: int
    ) -> list[NewRecord]:
        """Return the events of some guesses, what concerns one topic and broker in one.

        brokers: epochs by id.
        """
        ordered = sorted(asks, key=lambda ask: (_ORDER.index(ask.kind), ask.broker, ask.subject))
        records: list[NewRecord] = []
        for (kind, broker), alike in groupby(ordered, key=lambda ask: (ask.kind, ask.broker)):
            if kind is AskKind.SHUT_DOWN:
                records.append(self._shutdown(broker))
                continue
            for topic, of_topic in groupby(alike, key=lambda ask: ask.subject[0]):
                epoch = brokers.get(broker, _NOT_STATED)
                asked = _Asked(topic, broker, list(of_topic), epoch, controller_epoch)
                records.append(self._event(kind, asked))
        return records

    def _event(self, kind: AskKind, asked: _Asked) -> NewRecord:
        match kind:
            case AskKind.ALTER_ISR:
                return self._alter_isr(asked)
            case AskKind.ELECT_PREFERRED | AskKind.ELECT_UNCLEAN:
                return self._elect(kind.removeprefix("elect_"), asked)
            case AskKind.REASSIGN:
                targets = {ask.subject[1]: ask.replicas for ask in asked.asks}
                return self.reassign(asked.topic, targets)
            case AskKind.FAIL_LOG_DIR:
                return _fail_log_dir(asked)
            case _:
                return _observed(_CAUSES[kind], asked)

    def reassign(self, topic: str, targets: Mapping[int, Sequence[int] | None]) -> NewRecord:
        """Return the event of reassignments of a topic's partitions, None: taken back."""
        body = {
            "request_id": self._request_id(),
            "topic": topic,
            "partitions": list(targets),
            "targets": [None if ids is None else list(ids) for ids in targets.values()],
        }
        return event(EventKind.ALTER_REASSIGNMENTS_REQUESTED, body, topic)

    def _alter_isr(self, asked: _Asked) -> NewRecord:
        body = {
            "request_id": self._request_id(),
            "broker_id": asked.broker,
            "broker_epoch": asked.broker_epoch,
            "version": _NEWEST,
            "topic": asked.topic,
            "partitions": [_altered(ask) for ask in asked.asks],
        }
        return event(EventKind.ALTER_PARTITION_REQUESTED, body, asked.topic)

    def _elect(self, election_type: str, asked: _Asked) -> NewRecord:
        body = {
            "request_id": self._request_id(),
            "topic": asked.topic,
            "election_type": election_type,
            "partitions": asked.partitions,
        }
        return event(EventKind.ELECT_LEADERS_REQUESTED, body, asked.topic)

    def _shutdown(self, broker: int) -> NewRecord:
        return event(
            EventKind.CONTROLLED_SHUTDOWN_REQUESTED,
            {
                "request_id": self._request_id(),
                "broker_id": broker,
                "broker_epoch": _NOT_STATED,
                "version": _NEWEST,
            },
        )

    def _request_id(self) -> str:
        return f"shadow-{next(self._numbers)}"


def replicas_deleted(
    topic: str, stopped: Iterable[tuple[int, int]], brokers: Mapping[int, int]
) -> list[NewRecord]:
    """Return the answers of brokers that deleted the (broker, partition)s of a topic."""
    records = []
    for broker, of_broker in groupby(sorted(stopped), key=lambda pair: pair[0]):
        partitions = [partition for _, partition in of_broker]
        errors = [int(ProtocolError.NONE)] * len(partitions)
        body = _answer(broker, brokers.get(broker, _NOT_STATED), topic, partitions, errors)
        records.append(event(EventKind.STOP_REPLICA_ANSWERED, body, topic))
    return records


def _fail_log_dir(asked: _Asked) -> NewRecord:
    errors = [int(ProtocolError.KAFKA_STORAGE_ERROR)] * len(asked.asks)
    body = _answer(asked.broker, asked.broker_epoch, asked.topic, asked.partitions, errors)
    return event(EventKind.LEADER_AND_ISR_ANSWERED, body, asked.topic)


def _observed(cause: StateCause, asked: _Asked) -> NewRecord:
    body = {
        "topic": asked.topic,
        "cause": cause,
        "partitions": asked.partitions,
        "states": [to_state(ask.state, asked.controller_epoch) for ask in asked.asks],
    }
    return event(EventKind.PARTITION_STATES_OBSERVED, body, asked.topic)


def _answer(
    broker: int, broker_epoch: int, topic: str, partitions: list[int], errors: list[int]
) -> dict[str, Any]:
    return {
        "broker_id": broker,
        "broker_epoch": broker_epoch,
        "topic": topic,
        "partitions": partitions,
        "errors": errors,
    }


def _altered(ask: Ask) -> dict[str, Any]:
    assert ask.state is not None
    assert ask.basis is not None
    return {
        "partition": ask.subject[1],
        "leader_epoch": ask.basis.leader_epoch,
        "partition_epoch": ask.basis.version,
        "recovery": ask.state.recovery,
        "isr": list(ask.state.isr),
    }
