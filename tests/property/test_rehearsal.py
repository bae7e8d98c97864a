"""Rehearsals behind any log: they decide what the job would, and compare the same partitions."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from checkpoints.machine_format import decode_machine
from checkpoints.replay import fold_batch
from checkpoints.snapshot import Snapshot
from state.event_kinds import EventKind
from state.events import Event
from state.partitions.slot import Slot
from state.routing import GROUP_SLOTS, Layout
from streaming.errors import ConfigurationError
from streaming.log.events import event
from streaming.rehearsal.acts import Acts
from streaming.rehearsal.cluster_copy import ClusterCopy
from streaming.rehearsal.standing import standing_of
from streaming.rehearsal.steps import Step, StepKind
from tests.fixtures.folding import fold_log
from tests.logs.state_logs import PLAUSIBLE_LOGS

LAYOUT = Layout(3, GROUP_SLOTS)


def copied(log: list[Event]) -> ClusterCopy:
    states, _ = fold_log(log, LAYOUT.slots)
    try:
        return ClusterCopy(Snapshot(len(log), LAYOUT, states))
    except ConfigurationError:  # nothing is decided at its end
        assume(False)
        raise


@given(PLAUSIBLE_LOGS, st.data())
def test_steps_compare_the_same_partitions(log: list[Event], data: st.DataObject) -> None:
    copy = copied(log)
    acts, known = Acts(copy), sorted(copy.cluster.brokers.by_id)
    before = copy.standing()
    for _ in range(6):
        running = copy.cluster.brokers.by_id.keys()
        broker = data.draw(st.sampled_from(known)) if known else None
        if broker is None:
            return
        ends = data.draw(st.sampled_from([StepKind.KILL, StepKind.STOP]))
        acts.carry_out(Step(ends if broker in running else StepKind.START, (broker,)))
        after = copy.standing()
        assert after.topic.tolist() == before.topic.tolist()
        assert after.partition.tolist() == before.partition.tolist()
        assert not (after.leaderless & ~after.in_use).any()
        before = after


@given(PLAUSIBLE_LOGS)
def test_a_death_is_decided_as_the_job_decides_it(log: list[Event]) -> None:
    copy = copied(log)
    assume(not copy.cluster.config.unclean_recovery)  # nobody rehearses what brokers would say
    states, _ = fold_log(log, LAYOUT.slots)
    for broker in sorted(copy.cluster.brokers.by_id):
        died = event(EventKind.BROKER_REGISTRATIONS_CHANGED, {"unregistered": [broker]})
        Acts(copy).carry_out(Step(StepKind.KILL, (broker,)))
        happened = Event(copy.offset - 1, log[-1].time_ms, died.kind, died.key, died.payload)
        fold_batch(states, [happened], LAYOUT)
        machines = [decode_machine(states[key]) for key in sorted(states)]
        real = standing_of(one for one in machines if isinstance(one, Slot))
        rehearsed = copy.standing()
        assert rehearsed.leader.tolist() == real.leader.tolist()
        assert rehearsed.isr.tolist() == real.isr.tolist()
        assert rehearsed.in_use.tolist() == real.in_use.tolist()
