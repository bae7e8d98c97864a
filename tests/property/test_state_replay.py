"""What is decided does not depend on batches, slots, restarts or the order of sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from state.events import Event
from state.merge import decision_digest_input
from tests.fixtures.folding import fold_log
from tests.property.state_logs import LOGS

ROOT = Path(__file__).parents[2]


@given(log=LOGS, data=st.data())
def test_batches_and_restarts_change_nothing(log: list[Event], data: st.DataObject) -> None:
    cuts = data.draw(st.sets(st.integers(1, len(log))), label="cuts")
    slots = data.draw(st.sampled_from([1, 4]), label="slots")
    assert fold_log(log, slots, cuts) == fold_log(log, slots)


@given(log=LOGS)
def test_one_event_a_batch_is_as_good_as_all_in_one(log: list[Event]) -> None:
    assert fold_log(log, 4, range(1, len(log))) == fold_log(log, 4)


@given(log=LOGS, slots=st.sampled_from([4, 16]))
def test_the_number_of_slots_changes_nothing(log: list[Event], slots: int) -> None:
    one, many = fold_log(log, 1)[1], fold_log(log, slots)[1]
    assert [decision_digest_input(decision) for decision in many] == [
        decision_digest_input(decision) for decision in one
    ]


DIGEST = """
import hashlib
from state.merge import decision_digest_input
from tests.fixtures.folding import fold_log
from tests.property.state_logs import authored, random_intents
events = authored(random_intents(7, 300))
states, decisions = fold_log(events, 4, range(0, len(events), 9))
digest = hashlib.sha256()
for decision in decisions:
    digest.update(decision_digest_input(decision))
for key in sorted(states):
    digest.update(states[key])
print(len(decisions) > 400, digest.hexdigest())
"""


def test_the_order_of_sets_changes_nothing() -> None:
    """Two processes with different hash seeds make the same bytes."""
    said = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
    assert said.pop().startswith("True ")
