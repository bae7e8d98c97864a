"""Machines that stay decoded decide what machines decide that begin from bytes in each batch."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import kept_machines
from checkpoints.kept_machines import KeptMachines
from checkpoints.machine_format import encode_machine
from checkpoints.replay import batches, fold_batch
from state import step as step_module
from state.events import Event
from state.merge import MergedDecision
from state.routing import GROUP_SLOTS, Layout
from tests.logs.group_intents import LOGS as GROUP_LOGS
from tests.logs.state_logs import LOGS

LAYOUT = Layout(4, GROUP_SLOTS)
FATAL = 7
"""Each event of this many fails."""


def kept(log: Sequence[Event], cut: int, batch: int) -> list[MergedDecision]:
    """What is decided by machines that are kept from the cut on."""
    states: dict[int, bytes] = {}
    decisions = fold_batch(states, log[:cut], LAYOUT)
    machines = KeptMachines(states)
    for one in batches(log[cut:], batch):
        decisions += machines.fold_batch(one, LAYOUT)
    return decisions


@pytest.fixture(params=[0, 1 << 20])
def least_bytes(request, monkeypatch):
    """When machines are encoded again: behind each batch, or behind none of these."""
    monkeypatch.setattr(kept_machines, "_LEAST_BYTES", request.param)
    return request.param


def check_same(log: Sequence[Event], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(log)), label="cut")
    batch = data.draw(st.sampled_from([1, 3, 50]), label="batch")
    assert kept(log, cut, batch) == fold_batch({}, log, LAYOUT)


@pytest.mark.parametrize("fails", [False, True])
def test_kept_machines_decide_the_same(least_bytes, fails, monkeypatch):
    real = step_module.step

    def step(machine, event):
        found = real(machine, event)
        if event.offset % FATAL == FATAL - 1:
            raise ZeroDivisionError(f"on {event.offset}")
        return found

    @settings(max_examples=settings.default.max_examples // 4)
    @given(log=LOGS, author=GROUP_LOGS, data=st.data())
    def any_log(log, author, data):  # whose making folds, too
        with monkeypatch.context() as patched:
            if fails:
                patched.setattr(step_module, "step", step)
            check_same(log, data)
            check_same(author.events, data)

    any_log()


def test_a_machine_is_encoded_when_as_much_has_come_as_it_was(monkeypatch):
    encoded = []

    def noted(machine):
        encoded.append(1)
        return encode_machine(machine)

    monkeypatch.setattr(kept_machines, "encode_machine", noted)
    monkeypatch.setattr(kept_machines, "_LEAST_BYTES", 4_000)
    machines = KeptMachines({})
    for number in range(100):
        payload = b'{"padding":"%s"}' % (b"x" * 1_000)
        machines.fold_batch([Event(number, 0, "topic_removed", "t", payload)], Layout(1, 1))
    assert len(encoded) == 25


def test_states_are_used_up():
    states: dict[int, bytes] = {}
    fold_batch(states, [Event(0, 0, "resync_completed", "", b'{"topics":0}')], LAYOUT)
    assert states
    machines = KeptMachines(states)
    machines.fold_batch([Event(1, 0, "resync_completed", "", b'{"topics":0}')], LAYOUT)
    assert not states
