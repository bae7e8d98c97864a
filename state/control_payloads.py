"""Payloads of pauses and of checked shutdowns, and the functions that read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from state.json_values import text, whole_number
from state.payload_readers import controlled_shutdown_requested
from state.payloads import ControlledShutdownRequested


@dataclass(frozen=True, slots=True)
class ControllerPaused:
    """Nothing is to be decided until controller_resumed and the load after it."""

    reason: str


@dataclass(frozen=True, slots=True)
class ControllerResumed:
    """The pause ends with the next load."""

    reason: str


@dataclass(frozen=True, slots=True)
class ControlledShutdownAllowed:
    """A broker may shut down even if partitions fall below min.insync.replicas."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class ControlledShutdownChecked:
    """What all slots found about a broker's request: (topic, partition) of those that would be left
    with fewer replicas in sync than min.insync.replicas; live: the live brokers then, ascending.
    """

    request: ControlledShutdownRequested
    live: tuple[int, ...]
    at_risk: tuple[tuple[str, int], ...]


ControlPayload: TypeAlias = (
    ControllerPaused | ControllerResumed | ControlledShutdownAllowed | ControlledShutdownChecked
)


def controller_paused(body: dict[str, Any]) -> ControllerPaused:
    """Read controller_paused."""
    return ControllerPaused(reason=text(body["reason"]))


def controller_resumed(body: dict[str, Any]) -> ControllerResumed:
    """Read controller_resumed."""
    return ControllerResumed(reason=text(body["reason"]))


def controlled_shutdown_allowed(body: dict[str, Any]) -> ControlledShutdownAllowed:
    """Read controlled_shutdown_allowed."""
    return ControlledShutdownAllowed(broker_id=whole_number(body["broker_id"]))


def controlled_shutdown_checked(body: dict[str, Any]) -> ControlledShutdownChecked:
    """Read controlled_shutdown_checked."""
    return ControlledShutdownChecked(
        request=controlled_shutdown_requested(body),
        live=tuple(map(whole_number, body["live"])),
        at_risk=tuple(
            (text(topic), whole_number(partition)) for topic, partition in body["at_risk"]
        ),
    )
