"""A log folded again gives the same digest, whatever the batches, slots, restarts and settings."""

from __future__ import annotations

import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.machine_format import decode_machine
from checkpoints.replay import Digest, batches, fold_batch, fold_log
from checkpoints.reslot import reslot
from checkpoints.snapshot import Snapshot, read_snapshot, write_snapshot
from state.events import Event
from state.merge import MergedDecision
from state.routing import CLUSTER_KEY
from tests.property.state_logs import LOGS, WEIGHTS, authored


@pytest.fixture(scope="module")
def log() -> list[Event]:
    """More than a thousand events of every kind."""
    chance = random.Random(3)
    names = [function.__name__ for function in WEIGHTS]
    intents = [
        (chance.choice(names), *(chance.randrange(64) for _ in range(4))) for _ in range(850)
    ]
    events = authored(intents)
    assert len(events) > 1_000
    return events


def digest_of(decisions: list[MergedDecision]) -> str:
    digest = Digest()
    digest.update(decisions)
    return digest.hexdigest()


def replayed(events: list[Event], batch: int, slots: int) -> str:
    states: dict[int, bytes] = {}
    digest = Digest()
    for one in batches(events, batch):
        digest.update(fold_batch(states, one, slots))
    return digest.hexdigest()


@pytest.mark.parametrize(
    ("batch", "slots"), [(1, 1), (1, 16), (7, 16), (7, 64), (1_000, 64), (10**6, 16), (10**6, 64)]
)
def test_batch_sizes_and_slot_counts_do_not_change_the_digest(log, batch, slots):
    assert replayed(log, batch, slots) == digest_of(fold_log(log, 1)[1])


def test_the_digest_covers_order_and_bytes(log):
    decisions = fold_log(log[:200], 1)[1]
    assert digest_of(decisions) != digest_of(decisions[:-1])
    assert digest_of(decisions) != digest_of([*decisions[1:], decisions[0]])


@given(log=LOGS, data=st.data())
def test_topics_can_be_spread_over_other_slots_at_any_place(log, data):
    cut = data.draw(st.integers(0, len(log)), label="cut")
    before, after = data.draw(st.tuples(*[st.sampled_from([1, 4, 16])] * 2), label="slots")
    states, _ = fold_log(log[:cut], before)
    moved = reslot(Snapshot(cut, before, states), after)
    assert moved.slots == after
    assert max(moved.states, default=CLUSTER_KEY) < after
    rest = fold_batch(dict(moved.states), log[cut:], after)
    wanted = [one for one in fold_log(log, 1)[1] if one.offset >= cut]
    assert digest_of(rest) == digest_of(wanted)


def test_spreading_there_and_back_keeps_every_partition(log):
    states, _ = fold_log(log[:600], 4)
    back = reslot(reslot(Snapshot(600, 4, states), 16), 4)
    assert back.offset == 600

    def partitions(states: dict[int, bytes]) -> list[object]:
        tables = [decode_machine(states[key]).table for key in sorted(states) if key != CLUSTER_KEY]
        return sorted(
            (key, table.topics[topic].name, partition, version)
            for key, table in enumerate(tables)
            for topic, partition, version in zip(
                table.rows.topic.tolist(),
                table.rows.partition.tolist(),
                table.rows.zk_version.tolist(),
                strict=True,
            )
        )

    assert partitions(back.states) == partitions(states) != []


def test_a_snapshot_is_read_back_as_it_was(log, tmp_path):
    states, _ = fold_log(log[:300], 4)
    written = Snapshot(300, 4, states)
    write_snapshot(tmp_path / "machines.parquet", written)
    found = read_snapshot(tmp_path / "machines.parquet")
    assert (found.offset, found.slots) == (300, 4)
    assert found.states == states
    assert [file.name for file in tmp_path.iterdir()] == ["machines.parquet"]


def test_the_json_of_an_event_is_not_looked_at_before_it_is_its_turn():
    """An event that cannot be read is set aside in a replay as it was before."""
    log = [Event(0, 1, "topic_observed", "t", b"{"), Event(1, 2, "unknown", "", b"{}")]
    _, decisions = fold_log(log, 4)
    assert [orjson.loads(one.body)["kind"] for one in decisions] == ["topic_observed", "unknown"]
