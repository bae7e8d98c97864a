"""The bytes of a group slot: a sample of each format version, frozen, is read for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkpoints.group_format import GROUP_FORMAT_VERSION
from checkpoints.machine_format import decode_machine, encode_machine
from state.errors import CorruptBlock
from state.groups.bucket import decode_bucket
from state.groups.buckets import group_bucket, timer_name
from state.groups.group import Group
from state.groups.slot import GroupSlot, Ownership
from state.groups.states import GroupState
from state.groups.tables import CoordinatorPhase
from state.routing import GROUP_KEY
from state.step import new_machine
from streaming.image.restore import timers_of
from tests.unit.state.group_support import Coordinator, metadata

FOLDER = Path(__file__).parents[2] / "frozen"
FROZEN = FOLDER / "groups-v1.bin"
"""Of when the clock was told of the ends of sessions too."""
FROZEN_LATER = FOLDER / "groups-v1-sessions-untold.bin"
"""Of when a subscription could end after its topics."""
FROZEN_LAST = FOLDER / "groups-v1-user-data.bin"
WRITTEN = FOLDER / "groups-v2.bin"


def sample() -> Coordinator:
    """Groups with something in every field."""
    config = {"group.max.size": 9, "offsets.retention.ms": 5_000_000_000}
    coordinator = Coordinator(**config, **{"group.leave.rebalance.delay.ms": 7_000})
    one = coordinator.join("g", instance="i", version=5, protocols=[["range", metadata("a")]])
    coordinator.tick(3_000)
    [member] = coordinator.answer(one)["members"]
    coordinator.sync("g", member[0], 1, [[member[0], "AAEC"]], instance="i")
    coordinator.commit("g", [["a", 0, 7, 3, "m"], ["b", 1, 8, -1, ""]], member[0], 1, instance="i")
    coordinator.txn_commit("g", 77, [["a", 2, 9, -1, ""]])
    coordinator.join("g", version=3, protocols=[["range", metadata("a")], ["x", ""]])
    coordinator.join("h")
    coordinator.commit("simple", [["a", 0, 5, -1, ""]], retention_ms=60_000)
    return coordinator


def test_version_2_is_still_written_and_read(rewrite_golden: bool) -> None:
    data = sample().state
    if rewrite_golden and not WRITTEN.exists():  # a frozen file is never written again
        WRITTEN.write_bytes(data)
    assert data == WRITTEN.read_bytes()
    assert encode_machine(decode_machine(data)) == data


@pytest.mark.parametrize("path", [FROZEN, FROZEN_LATER, FROZEN_LAST], ids=lambda path: path.stem)
def test_version_1_is_read_as_without_a_delay(path: Path) -> None:
    slot = decode_machine(path.read_bytes())
    assert isinstance(slot, GroupSlot)
    assert slot.config.leave_rebalance_delay_ms == 0
    again = decode_machine(encode_machine(slot))
    assert isinstance(again, GroupSlot)
    assert (again.config, again.partitions, again.stored) == (
        slot.config,
        slot.partitions,
        slot.stored,
    )


def frozen_group(name: str) -> Group:
    slot = decode_machine(FROZEN.read_bytes())
    assert isinstance(slot, GroupSlot)
    group = slot.bucket(group_bucket(name)).get(name)
    assert group is not None
    return group


def test_a_frozen_slot_says_what_it_said() -> None:
    slot = decode_machine(FROZEN.read_bytes())
    assert isinstance(slot, GroupSlot)
    assert (slot.config.max_size, slot.config.offsets_retention_ms) == (9, 5_000_000_000)
    assert slot.partitions == {4: Ownership(1, CoordinatorPhase.OWNED)}
    assert slot.transactional == {group_bucket("g")}
    assert slot.bucket(group_bucket("h")).armed_ms == 13_000 + 100
    now, timers = decode_machine(FROZEN_LATER.read_bytes()), sample().timers.items()
    assert timers_of([now]) == {timer: due + sample().slacks[timer] for timer, due in timers}
    assert timers_of([slot]) == {**timers_of([now]), timer_name(group_bucket("g")): 13_000}


def test_groups_whose_sessions_the_clock_was_told_of_go_on() -> None:
    """The timer rings once more, at the end of the session, and is armed for the others then."""
    coordinator = sample()
    coordinator.state = FROZEN.read_bytes()
    timer = timer_name(group_bucket("g"))
    coordinator.timers = timers_of([coordinator.slot])
    [first, _] = coordinator.group("g").members.values()
    row = ["g", first.id, "i", 1, 0]
    coordinator.now_ms = 12_000
    coordinator.happen("heartbeats_received", str(group_bucket("g")), heartbeats=[row])
    coordinator.tick(13_000)
    assert first.id in coordinator.group("g").members
    assert coordinator.timers[timer] == 63_000


def test_a_frozen_group_says_what_it_said() -> None:
    group = frozen_group("g")
    assert (group.state, group.generation, group.partition) == (GroupState.PREPARING, 1, 4)
    assert (group.protocol_type, group.protocol) == ("consumer", "range")
    assert (group.subscribed, group.assigned_by) == (("a",), (5, 0))
    assert group.state_since_ms == 3_000
    assert group.join_timer == (63_000, None)
    first, second = group.members.values()
    assert group.leader == first.id == group.instances["i"]
    assert (first.client, first.host, first.assignment) == ("client", "/host", "AAEC")
    assert (first.session_timeout_ms, first.rebalance_timeout_ms) == (10_000, 60_000)
    assert (first.deadline_ms, first.is_new, first.join_request) == (13_000, False, None)
    assert (second.is_new, second.instance) == (True, None)
    assert [name for name, _ in second.protocols] == ["range", "x"]
    assert second.join_request is not None
    rows = group.store.rows
    assert rows["a", 0] == (7, 3, "m", 3_000, None, 6)
    assert rows["b", 1].offset == 8
    assert group.store.pending == {77: {("a", 2): (9, -1, "", 3_000, None, 7)}}


def test_other_frozen_groups_say_what_they_said() -> None:
    waits = frozen_group("h")
    assert (waits.state, waits.members) == (GroupState.EMPTY, {})
    assert list(waits.pending.values()) == [13_000]
    simple = frozen_group("simple")
    assert (simple.generation, simple.protocol_type) == (0, None)
    assert simple.store.rows["a", 0].expire_ms == 63_000


def test_a_slot_that_has_seen_nothing_is_written_and_read() -> None:
    data = encode_machine(new_machine(GROUP_KEY))
    assert encode_machine(decode_machine(data)) == data


def test_groups_that_no_event_concerns_keep_their_bytes_unopened() -> None:
    slot = decode_machine(FROZEN.read_bytes())
    assert isinstance(slot, GroupSlot)
    bucket = slot.bucket(group_bucket("h"))
    assert bucket.entries["h"].group is None
    assert group_bucket("g") in slot.stored
    assert encode_machine(slot) == encode_machine(decode_machine(FROZEN.read_bytes()))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (FROZEN.read_bytes()[:2] + b"\x03" + FROZEN.read_bytes()[3:], r"versions 1, 2 of"),
        (FROZEN.read_bytes() + b"x", "its header says"),
        (FROZEN.read_bytes()[:-1], "its header says"),
    ],
    ids=["version", "longer", "shorter"],
)
def test_bytes_that_do_not_fit_are_refused(data: bytes, sentence: str) -> None:
    assert GROUP_FORMAT_VERSION == 2
    with pytest.raises(CorruptBlock, match=sentence):
        decode_machine(data)


def test_a_bucket_that_does_not_fit_is_refused() -> None:
    slot = decode_machine(FROZEN.read_bytes())
    assert isinstance(slot, GroupSlot)
    data = slot.stored[group_bucket("g")]
    with pytest.raises(CorruptBlock, match="does not end with its last group"):
        decode_bucket(data + b"x")
