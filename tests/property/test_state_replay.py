"""What is decided does not depend on batches, slots, restarts or the order of sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.events import Event
from state.merge import decision_digest_input
from state.partitions import table
from state.topic_ids import topic_id_to_text
from tests.fixtures.folding import fold_log
from tests.logs.state_logs import LOGS, author_of

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


NAMES = [f"t{number}" for number in range(6)]


def deletions(deleted: list[str], late: list[str]) -> list[Event]:
    """Return the log of topics that are deleted one by one, and what is heard of some of them
    afterwards.
    """
    author = author_of([])
    seen = {"partitions": [0], "replicas": [[1]]}
    done = {"broker_id": 1, "broker_epoch": author.registered[1], "partitions": [0], "errors": [0]}
    ids = {name: topic_id_to_text(name.encode() * 8) for name in NAMES}
    for name in deleted:
        author.write("topic_observed", name, topic=name, topic_id=ids[name], **seen)
        author.write("topic_deletion_requested", name, topic=name, topic_id=ids[name])
    for name in deleted:
        author.write("stop_replica_answered", name, topic=name, **done)
    for name in late:
        author.write("topic_observed", name, topic=name, topic_id=ids[name], **seen)
    return author.events


@given(
    deleted=st.permutations(NAMES),
    late=st.lists(st.sampled_from(NAMES), min_size=3, max_size=6),
    limit=st.integers(0, 9),
    data=st.data(),
)
def test_how_long_a_deletion_is_remembered_depends_on_the_log_alone(
    deleted: list[str], late: list[str], limit: int, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "DELETED_FOR_EVENTS", limit)
        log = deletions(deleted, late)
        cuts = data.draw(st.sets(st.integers(1, len(log))), label="cuts")
        many = fold_log(log, 4)
        assert fold_log(log, 4, cuts) == many
        one = fold_log(log, 1)
    assert [decision_digest_input(decision) for decision in many[1]] == [
        decision_digest_input(decision) for decision in one[1]
    ]


DIGEST = """
import hashlib
from state.merge import decision_digest_input
from tests.fixtures.folding import fold_log
from tests.logs.state_logs import authored, random_intents
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
