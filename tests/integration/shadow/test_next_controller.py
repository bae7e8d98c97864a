"""What the next controller wrote before we read is not shown to our machine, and compared."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.shadow.comparison import Comparison
from streaming.shadow.reader import ClusterReader
from streaming.shadow.shadow import Shadow
from streaming.shadow.verdicts import Status
from streaming.zk.client import ZkSession
from streaming.zk.errors import ConnectionLost
from streaming.zk.ops import Create, Delete, SetData, WriteOp
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import (
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    LOG_DIR_EVENT_PATH,
    TOPICS_PATH,
    TopicZNode,
    broker_path,
    controller_bytes,
    partition_state_path,
    topic_bytes,
    topic_path,
)
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

STATE = partition_state_path("t", 0)
CLAIM = (
    SetData(CONTROLLER_EPOCH_PATH, b"2", -1),
    Delete(CONTROLLER_PATH),
    Create(CONTROLLER_PATH, controller_bytes(2, 1)),
)


def elect(live: ZkSession, *ops: WriteOp) -> None:
    """Have another controller take over and write, before anybody can look."""
    live.multi([*CLAIM, *ops])


def resign(live: ZkSession, reader: ClusterReader) -> None:
    """Have it seen that there is no controller, before there is one again."""
    live.delete(CONTROLLER_PATH)
    look_until(reader, lambda look: look.inputs)
    live.create(CONTROLLER_PATH)


def fail_once(monkeypatch: pytest.MonkeyPatch, seen: ZkReader, path: str) -> None:
    """Lose the connection when the children of a path are read next."""
    read = seen.children

    def children(asked: str, *watch: Any) -> Any:
        if asked == path:
            monkeypatch.setattr(seen, "children", read)
            raise ConnectionLost("gone for a moment")
        return read(asked, *watch)

    monkeypatch.setattr(seen, "children", children)


@pytest.mark.parametrize("resigned", [False, True], ids=["in one look", "in two"])
@pytest.mark.parametrize("lost", [None, LOG_DIR_EVENT_PATH, TOPICS_PATH])
def test_a_state_is_shown_as_it_was_before_and_compared(
    live: ZkSession,
    seen: ZkReader,
    monkeypatch: pytest.MonkeyPatch,
    *,
    resigned: bool,
    lost: str | None,
) -> None:
    """However often the connection is lost while it is read."""
    reader = reader_of(seen)
    look_until(reader, lambda look: look.load)
    if resigned:
        resign(live, reader)
    elect(live, SetData(STATE, state([1], 1, 1, 2), -1))
    wait_until_dirty(reader, STATE, CONTROLLER_PATH)
    if lost:
        fail_once(monkeypatch, seen, lost)
        with pytest.raises(ConnectionLost):
            reader.look()
    look = look_until(reader, lambda look: look.load)
    assert (look.load.epoch, look.load.first) == (2, False)
    assert (look.load.held["t", 0].leader_epoch, look.states["t", 0].leader_epoch) == (0, 1)


def test_a_change_of_the_last_controller_is_shown(live: ZkSession, seen: ZkReader) -> None:
    """Ours begins with what was there, as the next one does."""
    reader = reader_of(seen)
    look_until(reader, lambda look: look.load)
    resign(live, reader)
    elect(live, SetData(STATE, state([1], 1, 1, 1), -1))
    look = look_until(reader, lambda look: look.load)
    assert (look.load.held["t", 0].leader_epoch, look.states) == (1, {})


def test_a_topic_that_was_created_again_begins_without_a_state(
    live: ZkSession, seen: ZkReader
) -> None:
    create_topic(live, "u", [1, 2], state([2], 2, 7))
    reader = reader_of(seen)
    look_until(reader, lambda look: look.load)
    delete_topic(live, "u")
    create_topic(live, "u", [1, 2], state([1, 2], 1, 0, 2))
    elect(live)
    wait_until_dirty(reader, CONTROLLER_PATH)
    look = look_until(reader, lambda look: look.load)
    assert look.load.held["u", 0] is None
    assert look.states["u", 0].leader == 1


def test_another_leader_than_ours_differs_in_one_look(live: ZkSession, seen: ZkReader) -> None:
    """Broker 1 was leader and controller; the next controller elects the wrong one."""
    register(live, 1, 2, 3)
    live.set(topic_path("t"), topic_bytes(TopicZNode({0: [1, 2, 3]})))
    live.set(STATE, state([1, 2, 3]))
    reader, notes = reader_of(seen), Notes()
    shadow = Shadow(MemoryEngine(), Comparison(WINDOW_MS, GRACE_MS), notes)
    shadow.observe(look_until(reader, lambda look: look.load))
    elect(live, Delete(broker_path(1)), SetData(STATE, state([3, 2], 3, 1, 2), -1))
    wait_until_dirty(reader, STATE, CONTROLLER_PATH)
    look = look_until(reader, lambda look: look.load)
    shadow.observe(look)
    for waited_ms in (GRACE_MS, WINDOW_MS):
        shadow.settle(look.over_ms + waited_ms, look.over_ms + waited_ms)
    (verdict,) = notes.verdicts
    assert verdict.status is Status.DIFFERED
    assert (verdict.decided["leader"], verdict.live["leader"]) == (2, 3)
