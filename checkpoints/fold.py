"""Fold events into encoded machine state: what the streaming operator and a local replay both
call.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkpoints.machine_format import decode_machine, encode_machine
from state.decisions import Decision
from state.events import Event
from state.step import fold, new_machine, set_aside


def fold_state(
    key: int, data: bytes | None, events: Sequence[Event]
) -> tuple[bytes, list[Decision]]:
    """Return (state bytes, decisions) after folding events, ascending by offset, into a machine's
    state.

    data: the machine's bytes, None before its first event. An event on which a machine fails is set
    aside, and the machine goes on as if it had not happened, whatever else was folded with it.
    """
    machine = decode_machine(data) if data is not None else new_machine(key)
    try:
        decisions = fold(machine, events)
    except Exception as error:  # noqa: BLE001 - one bad event must not stop the others
        if len(events) > 1:
            return _fold_halves(key, data, events)
        before = encode_machine(new_machine(key)) if data is None else data
        return before, [set_aside(events[0], f"{type(error).__name__}: {error}")]
    return encode_machine(machine), decisions


def _fold_halves(
    key: int, data: bytes | None, events: Sequence[Event]
) -> tuple[bytes, list[Decision]]:
    """Close in on the event that fails: a large state is encoded some times for it, not for each
    event.
    """
    middle = len(events) // 2
    half, decisions = fold_state(key, data, events[:middle])
    whole, others = fold_state(key, half, events[middle:])
    return whole, [*decisions, *others]
