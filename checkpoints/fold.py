"""Fold events into encoded machine state: what the streaming operator and a local replay both
call.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkpoints.machine_format import decode_machine, encode_machine
from state.decisions import Decision
from state.events import Event
from state.step import fold, new_machine, set_aside, step


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
    except Exception:  # noqa: BLE001 - whichever event it was is found and set aside below
        return _fold_around_failures(key, data, events)
    return encode_machine(machine), decisions


def _fold_around_failures(
    key: int, data: bytes | None, events: Sequence[Event]
) -> tuple[bytes, list[Decision]]:
    machine = decode_machine(data) if data is not None else new_machine(key)
    before = encode_machine(machine)
    decisions: list[Decision] = []
    for event in events:
        try:
            decisions.extend(step(machine, event))
        except Exception as error:  # noqa: BLE001 - one bad event must not stop the others
            machine = decode_machine(before)
            decisions.append(set_aside(event, f"{type(error).__name__}: {error}"))
        before = encode_machine(machine)
    return before, decisions
