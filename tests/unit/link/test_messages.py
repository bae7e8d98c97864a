"""Frames of the link, whole and in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.link.messages import (
    HEADER_BYTES,
    decode_message,
    encode_message,
    frame_lengths,
    pack_parts,
    unpack_parts,
)

HEADS = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9), max_size=4)


@given(head=HEADS, body=st.binary(max_size=50))
def test_a_frame_says_its_lengths_and_gives_back_what_went_in(head, body):
    head = {key: value for key, value in head.items() if not isinstance(value, int)}
    frame = encode_message({"type": "t", **head}, body)
    head_bytes, body_bytes = frame_lengths(frame[:HEADER_BYTES])
    assert len(frame) == HEADER_BYTES + head_bytes + body_bytes
    cut = HEADER_BYTES + head_bytes
    message = decode_message(frame[HEADER_BYTES:cut], frame[cut:])
    assert message.head == {"type": "t", **head}
    assert message.body == body
    assert message.type == message.head["type"]


@given(parts=st.lists(st.binary(max_size=9)))
def test_values_are_found_again_by_their_sizes(parts):
    assert unpack_parts(pack_parts(parts), [len(part) for part in parts]) == parts


def test_sizes_that_do_not_add_up_are_refused():
    with pytest.raises(ValueError, match="body of 3 bytes, its parts say 4"):
        unpack_parts(b"abc", [1, 3])
