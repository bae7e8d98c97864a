"""Machines that stay decoded between batches, for a process that folds a long log alone.

Decoding and encoding all states in each of a load's batches takes a third of the fold of a million
partitions. What is decided is the same: `checkpoints.fold` begins from bytes every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from checkpoints.fold import fold_state
from checkpoints.machine_format import decode_machine, encode_machine
from checkpoints.replay import States, fold_by_machine
from state.decisions import Decision
from state.events import Event
from state.merge import MergedDecision
from state.routing import Layout
from state.step import Machine, fold, new_machine

_LEAST_BYTES = 1 << 20
"""Of payloads that are kept at least before a machine is encoded again."""


@dataclass(slots=True)
class _Kept:
    """A machine, and how to make it again: the state it was decoded from, and the events since."""

    machine: Machine
    data: bytes | None
    since: list[Event] = field(default_factory=list)
    since_bytes: int = 0


class KeptMachines:
    """All machines of one fold. Memory: states and payloads of about as many bytes, besides the
    machines.
    """

    def __init__(self, states: States) -> None:
        """Begin from these states, which are used up: each is taken out when it is decoded."""
        self._states = states
        self._kept: dict[int, _Kept] = {}

    def fold_batch(self, batch: Iterable[Event], layout: Layout) -> list[MergedDecision]:
        """Fold events, ascending by offset; return the merged decisions."""
        return fold_by_machine(self._fold, batch, layout)

    def clear(self) -> None:
        """Forget all of them."""
        self._states.clear()
        self._kept.clear()

    def _fold(self, key: int, events: Sequence[Event]) -> list[Decision]:
        kept = self._kept.pop(key, None) or _decoded(key, self._states.pop(key, None))
        try:
            decisions = fold(kept.machine, events)
        except Exception:  # noqa: BLE001 - the event that fails is found, and set aside
            data, decisions = fold_state(key, _encoded(key, kept), events)
            self._kept[key] = _decoded(key, data)
            return decisions
        kept.since.extend(events)
        kept.since_bytes += sum(len(event.payload) for event in events)
        if kept.since_bytes > max(len(kept.data or b""), _LEAST_BYTES):
            kept = _Kept(kept.machine, encode_machine(kept.machine))
        self._kept[key] = kept
        return decisions


def _decoded(key: int, data: bytes | None) -> _Kept:
    return _Kept(new_machine(key) if data is None else decode_machine(data), data)


def _encoded(key: int, kept: _Kept) -> bytes | None:
    """Return the machine's state as it was before a fold that failed, which left it half done."""
    if not kept.since:
        return kept.data
    return fold_state(key, kept.data, kept.since)[0]
