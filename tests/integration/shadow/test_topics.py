"""Topics that come and go between two looks."""

from __future__ import annotations

from streaming.shadow.comparison import Comparison
from streaming.shadow.shadow import Shadow
from streaming.shadow.verdicts import Status
from streaming.zk.client import ZkSession
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import partition_state_path, topic_path
from tests.integration.shadow.support import (
    create_topic,
    delete_topic,
    look_until,
    reader_of,
    register,
    state,
    wait_until_dirty,
)
from tests.unit.shadow.support import GRACE_MS, WINDOW_MS, MemoryEngine, Notes


def test_a_topic_that_is_created_again_as_it_was_agrees(live: ZkSession, seen: ZkReader) -> None:
    """Its new state is as the old one: the same leader and ISR, epoch and version 0."""
    register(live, 1, 2)
    create_topic(live, "u", [1, 2], state([1, 2]))
    reader, notes = reader_of(seen), Notes()
    shadow = Shadow(MemoryEngine(), Comparison(WINDOW_MS, GRACE_MS), notes)
    shadow.observe(look_until(reader, lambda look: look.load))
    delete_topic(live, "u")
    create_topic(live, "u", [1, 2], state([1, 2]))
    wait_until_dirty(reader, topic_path("u"), partition_state_path("u", 0))
    while reader.dirty:
        look = reader.look()
        shadow.observe(look)
    shadow.settle(look.over_ms + WINDOW_MS, look.over_ms + WINDOW_MS)
    assert [(one.status, one.kind) for one in notes.verdicts] == [
        (Status.AGREED, "delete_topic"),
        (Status.AGREED, "new_partition_elected"),
    ]
