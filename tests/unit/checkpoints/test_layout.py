"""A checkpoint is only gone on from by a program that is configured as its maker was."""

from __future__ import annotations

import orjson
import pytest

from checkpoints.layout import LAYOUT_FILE, CheckpointMismatch, check_layout, layout_of
from checkpoints.machine_format import FORMAT_VERSION, READABLE_VERSIONS
from state.routing import GROUP_SLOTS, Layout


def test_a_new_checkpoint_is_noted_down_and_found_again(tmp_path):
    checkpoint = tmp_path / "data" / "checkpoint"
    check_layout(checkpoint, Layout(64, GROUP_SLOTS), 2)
    check_layout(checkpoint, Layout(64, GROUP_SLOTS), 2)
    noted = orjson.loads((checkpoint / LAYOUT_FILE).read_bytes())
    assert noted == {
        "slots": 64,
        "shuffle.partitions": 2,
        "group.slots": GROUP_SLOTS,
        "state.format": FORMAT_VERSION,
    }


def test_a_checkpoint_from_before_there_were_groups_takes_on_any_number_of_group_slots(tmp_path):
    noted = {"slots": 4, "shuffle.partitions": 1, "state.format": FORMAT_VERSION}
    (tmp_path / LAYOUT_FILE).write_bytes(orjson.dumps(noted))
    check_layout(tmp_path, Layout(4, 64), 1)
    with pytest.raises(CheckpointMismatch, match=r"made with group\.slots = 64, now it is 32"):
        check_layout(tmp_path, Layout(4, 32), 1)


@pytest.mark.parametrize(
    ("slots", "partitions", "sentence"),
    [
        (16, 2, r"was made with slots = 64, now it is 16; set it back, or move it: helmstream"),
        (64, 1, r"was made with shuffle\.partitions = 2, now it is 1; set it back"),
    ],
)
def test_another_layout_is_refused_with_both_values(tmp_path, slots, partitions, sentence):
    check_layout(tmp_path, Layout(64, GROUP_SLOTS), 2)
    with pytest.raises(CheckpointMismatch, match=sentence) as refused:
        check_layout(tmp_path, Layout(slots, GROUP_SLOTS), partitions)
    assert str(tmp_path) in str(refused.value)


def test_a_state_format_that_is_not_read_is_refused(tmp_path):
    check_layout(tmp_path, Layout(4, GROUP_SLOTS), 1)
    noted = orjson.loads((tmp_path / LAYOUT_FILE).read_bytes())
    noted["state.format"] = FORMAT_VERSION + 1
    (tmp_path / LAYOUT_FILE).write_bytes(orjson.dumps(noted))
    with pytest.raises(CheckpointMismatch, match=rf"state\.format = {FORMAT_VERSION + 1}, this"):
        check_layout(tmp_path, Layout(4, GROUP_SLOTS), 1)


@pytest.mark.parametrize("version", READABLE_VERSIONS)
def test_an_earlier_state_format_is_gone_on_from_and_noted_as_the_present_one(tmp_path, version):
    noted = {"slots": 4, "shuffle.partitions": 1, "state.format": version}
    (tmp_path / LAYOUT_FILE).write_bytes(orjson.dumps(noted))
    check_layout(tmp_path, Layout(4, GROUP_SLOTS), 1)
    noted |= {"state.format": FORMAT_VERSION, "group.slots": GROUP_SLOTS}
    assert orjson.loads((tmp_path / LAYOUT_FILE).read_bytes()) == noted
    assert layout_of(tmp_path) == Layout(4, GROUP_SLOTS)


@pytest.mark.parametrize("damaged", [b"", b'{"slots": 4', b"[]", b"{}"])
def test_a_damaged_note_is_refused(tmp_path, damaged):
    (tmp_path / LAYOUT_FILE).write_bytes(damaged)
    what_to_do = rf"{LAYOUT_FILE} .*; move {tmp_path} away: without it the cluster is loaded again"
    with pytest.raises(CheckpointMismatch, match=what_to_do):
        check_layout(tmp_path, Layout(4, GROUP_SLOTS), 1)
    with pytest.raises(CheckpointMismatch, match=LAYOUT_FILE):
        layout_of(tmp_path)


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path):
    with pytest.raises(CheckpointMismatch, match="is no checkpoint of helmstream"):
        layout_of(tmp_path)
