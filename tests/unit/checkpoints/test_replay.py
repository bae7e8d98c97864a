"""A log folded again gives the same digest, whatever the batches, slots, restarts and settings."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.layout import CheckpointMismatch
from checkpoints.machine_format import decode_machine
from checkpoints.replay import Digest, batches, fold_batch
from checkpoints.reslot import reslot
from checkpoints.snapshot import Snapshot, read_snapshot, write_snapshot
from state.blocks import decode_block, encode_block
from state.events import Event
from state.merge import MergedDecision
from state.routing import CLUSTER_KEY, GROUP_KEY, GROUP_SLOTS, Layout, topic_scope
from tests.fixtures.folding import fold_log
from tests.logs.group_intents import LOGS as GROUP_LOGS
from tests.logs.state_logs import LOGS, authored, random_intents
from tests.unit.state.support import Controller


@pytest.fixture(scope="module")
def log() -> list[Event]:
    """Hundreds of events of every kind."""
    events = authored(random_intents(3, 300))
    assert len(events) > 500
    return events


@pytest.fixture(scope="module")
def decided(log: list[Event]) -> list[MergedDecision]:
    """What one machine of all topics decides."""
    return fold_log(log, 1)[1]


def digest_of(decisions: list[MergedDecision]) -> str:
    digest = Digest()
    digest.update(decisions)
    return digest.hexdigest()


def replayed(events: list[Event], batch: int, slots: int) -> str:
    states: dict[int, bytes] = {}
    digest = Digest()
    for one in batches(events, batch):
        digest.update(fold_batch(states, one, Layout(slots, GROUP_SLOTS)))
    return digest.hexdigest()


@pytest.mark.parametrize(("batch", "slots"), [(1, 16), (7, 1), (1_000, 64), (10**6, 16)])
def test_batch_sizes_and_slot_counts_do_not_change_the_digest(log, decided, batch, slots):
    assert replayed(log, batch, slots) == digest_of(decided)


def test_the_digest_covers_order_and_bytes(log):
    decisions = fold_log(log[:200], 1)[1]
    assert digest_of(decisions) != digest_of(decisions[:-1])
    assert digest_of(decisions) != digest_of([*decisions[1:], decisions[0]])


@given(log=LOGS, data=st.data())
def test_topics_can_be_spread_over_other_slots_at_any_place(log, data):
    cut = data.draw(st.integers(0, len(log)), label="cut")
    before, after = data.draw(st.tuples(*[st.sampled_from([1, 4, 16])] * 2), label="slots")
    states, _ = fold_log(log[:cut], before)
    moved = reslot(Snapshot(cut, Layout(before, GROUP_SLOTS), states), Layout(after, GROUP_SLOTS))
    assert moved.layout.slots == after
    assert max((key for key in moved.states if key < GROUP_KEY), default=CLUSTER_KEY) < after
    rest = fold_batch(dict(moved.states), log[cut:], moved.layout)
    wanted = [one for one in fold_log(log, 1)[1] if one.offset >= cut]
    assert digest_of(rest) == digest_of(wanted)


@given(author=GROUP_LOGS, data=st.data())
def test_groups_can_be_spread_over_other_slots_at_any_place(author, data):
    log = author.events
    cut = data.draw(st.integers(0, len(log)), label="cut")
    before, after = data.draw(st.tuples(*[st.sampled_from([1, 3, 16])] * 2), label="slots")
    states, _ = fold_log(log[:cut], 1, (), before)
    moved = reslot(Snapshot(cut, Layout(1, before), states), Layout(1, after))
    assert moved.layout.group_slots == after
    assert max(moved.states, default=GROUP_KEY) < GROUP_KEY + after
    rest = fold_batch(dict(moved.states), log[cut:], moved.layout)
    wanted = [one for one in fold_log(log, 1, (), 1)[1] if one.offset >= cut]
    assert digest_of(rest) == digest_of(wanted)


def test_slots_that_do_not_agree_are_not_spread(log):
    states, _ = fold_log(log[:300], 4)
    other, _ = fold_log(log[:20], 4)
    with pytest.raises(CheckpointMismatch, match="the slots do not agree about the cluster"):
        reslot(
            Snapshot(300, Layout(4, GROUP_SLOTS), {**states, 2: other[2]}), Layout(2, GROUP_SLOTS)
        )


def test_slots_in_formats_of_different_versions_are_spread():
    controller = Controller()
    columns, extra = decode_block(controller.states[0])
    states = controller.states | {1: encode_block(columns, extra | {"format": 2})}
    moved = reslot(Snapshot(9, Layout(2, GROUP_SLOTS), states), Layout(1, GROUP_SLOTS))
    assert moved.states[0] == controller.states[0]


def test_spreading_there_and_back_keeps_every_partition():
    controller = Controller()
    for number in range(20):
        controller.topic(f"topic-{number}", [[1, 2, 3], [2, 3]][: 1 + number % 2])
    snapshot = Snapshot(23, Layout(1, GROUP_SLOTS), controller.states)
    spread = reslot(snapshot, Layout(16, GROUP_SLOTS))
    back = reslot(reslot(spread, Layout(4, GROUP_SLOTS)), Layout(16, GROUP_SLOTS))
    assert back.states == spread.states

    def names(states: dict[int, bytes]) -> dict[int, set[str]]:
        slots = {key: decode_machine(data) for key, data in states.items() if key >= 0}
        return {
            key: {slot.table.topics[topic].name for topic in slot.table.rows.topic.tolist()}
            for key, slot in slots.items()
        }

    wanted = {f"topic-{number}" for number in range(20)}
    placed = names(spread.states)
    assert set.union(*placed.values()) == wanted
    assert all(topic_scope(name) % 16 == key for key, of_slot in placed.items() for name in of_slot)
    rows = [len(decode_machine(data).table.rows) for key, data in spread.states.items() if key >= 0]
    assert sum(rows) == 30


def test_a_snapshot_is_read_back_as_it_was(log, tmp_path):
    states, _ = fold_log(log[:300], 4)
    written = Snapshot(300, Layout(4, GROUP_SLOTS), states)
    write_snapshot(tmp_path / "machines.parquet", written)
    found = read_snapshot(tmp_path / "machines.parquet")
    assert (found.offset, found.layout.slots) == (300, 4)
    assert found.states == states
    assert [file.name for file in tmp_path.iterdir()] == ["machines.parquet"]


def test_the_json_of_an_event_is_not_looked_at_before_it_is_its_turn():
    """An event that cannot be read is set aside in a replay as it was before."""
    log = [Event(0, 1, "topic_observed", "t", b"{"), Event(1, 2, "unknown", "", b"{}")]
    _, decisions = fold_log(log, 4)
    assert [orjson.loads(one.body)["kind"] for one in decisions] == ["topic_observed", "unknown"]
