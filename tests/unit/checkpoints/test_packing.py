"""What the state store holds: packed values, and those of before there were any."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.machine_format import decode_machine, encode_machine
from checkpoints.packing import packed, unpacked
from state.errors import CorruptBlock

FROZEN = Path(__file__).parents[2] / "frozen"
SLOT = (FROZEN / "slot-v2.bin").read_bytes()


@given(st.binary(max_size=5_000))
def test_what_is_packed_is_unpacked(data):
    assert unpacked(packed(data)) == data


@pytest.mark.parametrize("name", ["slot-v6.bin", "cluster-v6.bin", "groups-v2.bin"])
def test_states_that_were_never_packed_are_read_as_they_are(name):
    data = (FROZEN / name).read_bytes()
    assert unpacked(data) == data
    assert encode_machine(decode_machine(unpacked(packed(data)))) == data


def test_a_packed_sample_is_read_for_ever():
    assert unpacked((FROZEN / "slot-v2-packed-v1.bin").read_bytes()) == SLOT


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (packed(SLOT)[:40], "cannot be unpacked"),
        (packed(SLOT)[:6], "cannot be unpacked"),
        (b"HZ\x02" + packed(SLOT)[3:], r"version b'\\x02', this program reads 1"),
        (b"HZ", "version b''"),
    ],
)
def test_a_broken_value_is_named(value, words):
    with pytest.raises(CorruptBlock, match=words):
        unpacked(value)


def test_a_value_of_another_length_than_it_says_is_refused():
    value = packed(SLOT)
    for length in (len(SLOT) - 1, len(SLOT) + 1):
        with pytest.raises(CorruptBlock):
            decode_machine(unpacked(value[:3] + length.to_bytes(4, "little") + value[7:]))
