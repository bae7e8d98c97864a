"""How facts about the mocks in Kafka's tests are read here.

Kafka's tests count calls of a mocked request batch and a mocked store. Nothing here is mocked, so
the counts are taken from what one driven transition decided:

batches: transitions driven; each is decided in one batch, at most one block of a kind.
batch_controller_epoch: the epoch in the blocks of the last transition, or the machine's when it
decided nothing.
get_partition_state_calls: transitions that had to know what is stored: they write over a stored
state, take replicas off one, or are refused for what is (not) stored or for its ISR. The machine
holds the stored states, so there is no read to count.
create_partition_state_calls, update_partition_state_calls: transitions that create, or set, state
znodes: one round of writes each.
"""

from __future__ import annotations

from state.decisions import Action, DecisionKind, Rule
from state.merge import MergedDecision
from state.partitions.refusals import RefusalReason
from tests.conformance.world import World
from tests.fixtures.decision_rows import rows_of

_STORED = {RefusalReason.NO_STATE, RefusalReason.NEWER_CONTROLLER, RefusalReason.NO_CANDIDATE}


def count_calls(world: World, decisions: list[MergedDecision]) -> None:
    """Count what one transition's decisions stand for."""
    kinds = [decision.kind for decision in decisions]
    assert len(set(kinds)) == len(kinds), "a transition is one batch of decisions"
    world.count("batches")
    calls = set()
    for decision in decisions:
        if decision.kind is DecisionKind.CHANGE_PARTITIONS:
            rows, extra = rows_of(decision.body)
            world.epoch_in_batch = extra["controller_epoch"]
            for row in rows:
                calls |= _calls_of(row["actions"], row["rule"])
        if decision.kind is DecisionKind.REFUSE_TRANSITION:
            reasons = {row["reason"] for row in rows_of(decision.body)[0]}
            calls |= {"get_partition_state_calls"} if reasons & _STORED else set()
    for call in calls:
        world.count(call)


def _calls_of(actions: int, rule: int) -> set[str]:
    if actions & Action.CREATE:
        return {"create_partition_state_calls"}
    if actions & Action.WRITE:
        return {"get_partition_state_calls", "update_partition_state_calls"}
    return {"get_partition_state_calls"} if rule == Rule.REPLICA_STOPPED else set()
