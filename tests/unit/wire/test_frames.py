"""Frames cut out of a byte stream, however the stream was cut."""

from __future__ import annotations

import pytest

from streaming.wire.errors import FrameTooLarge, MalformedFrame
from streaming.wire.frames import FrameSplitter, frame

BODIES = [b"first", b"", b"x" * 300, b"last"]
STREAM = b"".join(map(frame, BODIES))


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 4, 5, 7, 64, len(STREAM)])
def test_any_chunk_size_gives_the_same_frames(chunk_bytes):
    splitter = FrameSplitter()
    frames = []
    for start in range(0, len(STREAM), chunk_bytes):
        frames += splitter.feed(STREAM[start : start + chunk_bytes])
    assert frames == BODIES


def test_an_incomplete_frame_is_kept():
    splitter = FrameSplitter()
    assert splitter.feed(STREAM[:-1]) == BODIES[:-1]
    assert splitter.feed(STREAM[-1:]) == BODIES[-1:]


def test_the_limit_is_checked_before_the_body_arrives():
    splitter = FrameSplitter(limit_bytes=300)
    assert splitter.feed(frame(b"y" * 300)) == [b"y" * 300]
    splitter.feed(b"\x00\x00\x01")
    with pytest.raises(
        FrameTooLarge, match="frame of 301 bytes exceeds the limit of 300"
    ) as caught:
        splitter.feed(b"\x2d")
    assert (caught.value.size_bytes, caught.value.limit_bytes) == (301, 300)


def test_a_negative_size_is_malformed():
    with pytest.raises(MalformedFrame, match="negative frame size -1"):
        FrameSplitter().feed(b"\xff\xff\xff\xff")
