"""Many znodes are read and watched at once: no change is missed, and none is made up."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from streaming.observers.tree import Dirty, DirtyPaths, WatchedTree
from streaming.zk import watches
from streaming.zk.client import ZkSession
from streaming.zk.multiread import PATHS_PER_REQUEST, Part, read_in_parts
from streaming.zk.ops import Create, Delete, SetData
from streaming.zk.reader import ZkReader
from streaming.zk.types import ZNode
from tests.fixtures.waiting import WAIT_S
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS, zookeeper_without_multiread

COUNT = 1_200
PATHS = [f"/n/{i}" for i in range(COUNT)]
MISSING = PATHS[1::100]


class Watched:
    """A tree on a reading session, and what it has marked."""

    def __init__(self, reader: ZkReader, writer: ZkSession) -> None:
        self.reader = reader
        self.writer = writer
        self._held: queue.Queue[None] = queue.Queue()
        self._dirty = DirtyPaths(lambda: self._held.put(None))
        self._tree = WatchedTree(reader, self._dirty)

    def read(self, paths: Sequence[str] = PATHS, **options: bool) -> list[ZNode | None]:
        return self._tree.get_many(paths, **options)

    def marks(self) -> Dirty:
        """Return what is marked before the mark of a znode that is written now."""
        self._tree.get("/end")
        self.writer.set("/end", b"")
        taken = Dirty()
        while "/end" not in taken.paths:
            self._held.get(timeout=WAIT_S)
            taken = Dirty.union([taken, self._dirty.drain()])
        return taken

    def marked(self) -> set[str]:
        taken = self.marks()
        assert not taken.reread_all
        return set(taken.paths - {"/end"})


def fill(writer: ZkSession) -> None:
    there = [path for path in PATHS if path not in MISSING]
    writer.multi([Create("/n"), Create("/end"), *(Create(path, b"0") for path in there)])


@pytest.fixture
def watched(zk_session: ZkSession) -> Iterator[Watched]:
    """Ours under a chroot: a fixture of a shared server."""
    fill(zk_session)
    with ZkReader(zk_session.hosts, SESSION_TIMEOUT_MS) as reader:
        yield Watched(reader, zk_session)


@contextmanager
def watching(hosts: str) -> Iterator[Watched]:
    """Sessions of its own, without a chroot."""
    with (
        ZkSession(hosts, SESSION_TIMEOUT_MS) as writer,
        ZkReader(hosts, SESSION_TIMEOUT_MS) as reader,
    ):
        fill(writer)
        yield Watched(reader, writer)


def before_the_watches(
    monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object], *, part: int = 0
) -> None:
    """Have something happen once between the read of a part and its watches."""

    def interrupted(session: ZkReader, paths: Sequence[str]) -> Iterator[Part]:
        for number, read in enumerate(read_in_parts(session, paths)):
            if number == part:
                happen()
            yield read
        monkeypatch.undo()

    monkeypatch.setattr(watches, "read_in_parts", interrupted)


def check_each_is_watched(watched: Watched) -> None:
    assert watched.marked() == set()
    there = [path for path in PATHS if path not in MISSING]
    some: list[Any] = [SetData(path, b"1", -1) for path in there[::7]]
    gone = [Delete(path) for path in there[3::7]]
    watched.writer.multi([*some, *gone, Create(MISSING[0])])
    assert watched.marked() == {op.path for op in (*some, *gone)}
    watched.writer.multi([SetData(op.path, b"2", -1) for op in some])
    assert watched.marked() == set(), "a watch fires once"


def test_every_znode_that_exists_is_read_and_watched(watched):
    assert watched.reader.chroot
    found = watched.read()
    assert found == [watched.writer.get(path) for path in PATHS]
    assert [path for path, znode in zip(PATHS, found, strict=True) if znode is None] == MISSING
    check_each_is_watched(watched)


def test_without_a_chroot_too(zookeeper_server):
    with watching(zookeeper_server.connect_string) as watched:
        assert watched.read()[0].data == b"0"
        check_each_is_watched(watched)


def test_what_is_read_twice_has_one_watch(watched):
    watched.read()
    watched.read()
    watched.writer.set(PATHS[0], b"1")
    assert [one for one in watched.marks().paths if one != "/end"] == [PATHS[0]]
    watched.writer.set(PATHS[0], b"2")
    assert watched.marked() == set()


@pytest.mark.parametrize("part", [0, 1, 2])
def test_what_changes_between_the_read_and_the_watches_is_marked(watched, monkeypatch, part):
    first = part * PATHS_PER_REQUEST
    changed, new, gone, again = PATHS[first : first + 4]
    assert new in MISSING

    def happen() -> None:
        ops = [SetData(changed, b"1", 0), Delete(gone), Delete(again), Create(again), Create(new)]
        watched.writer.multi(ops)

    before_the_watches(monkeypatch, happen, part=part)
    watched.read()
    assert watched.marked() == {changed, gone, again}, "a missing znode has no watch"
    found = dict(zip(PATHS, watched.read(), strict=True))
    assert (found[changed].data, found[gone], found[new].data) == (b"1", None, b"")
    assert watched.marked() == set(), "what was read as it is now is not marked again"
    watched.writer.multi([SetData(path, b"2", -1) for path in (changed, again, new, PATHS[-1])])
    assert watched.marked() == {changed, again, new, PATHS[-1]}


def test_a_znode_that_is_gone_is_marked_once_however_often_it_is_read(watched):
    watched.read()
    watched.writer.delete(PATHS[5])
    assert watched.marked() == {PATHS[5]}
    for _ in range(2):
        assert watched.read([PATHS[5]]) == [None]
        assert watched.marked() == set()


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_missing_znode_is_awaited_where_that_is_asked(watched, monkeypatch, part):
    first = part * PATHS_PER_REQUEST
    new, (other, *_) = PATHS[first + 1], (path for path in MISSING if path != PATHS[first + 1])
    assert new in MISSING
    before_the_watches(monkeypatch, lambda: watched.writer.create(new, b"1"), part=part)
    found = watched.read(await_missing=True)
    assert [path for path, znode in zip(PATHS, found, strict=True) if znode is None] == MISSING
    assert watched.marked() == {new}, "it was created before it was awaited"
    watched.writer.create(other, b"1")
    watched.writer.set(PATHS[0], b"1")
    assert watched.marked() == {other, PATHS[0]}
    watched.writer.set(other, b"2")
    assert watched.marked() == set(), "a watch fires once"


@pytest.mark.parametrize("part", [0, 2])
def test_after_a_lost_connection_all_is_to_be_read_again(zookeeper_server, monkeypatch, part):
    with watching(zookeeper_server.connect_string) as watched:

        def restart() -> None:
            zookeeper_server.kill()
            zookeeper_server.start()

        before_the_watches(monkeypatch, restart, part=part)
        assert len(watched.read()) == COUNT
        watched.writer.wait_until_held(WAIT_S)
        watched.reader.wait_until_held(WAIT_S)
        assert watched.marks().reread_all
        watched.read()
        check_each_is_watched(watched)


def test_a_server_without_multiread(tmp_path, monkeypatch):
    with (
        zookeeper_without_multiread(tmp_path / "old") as server,
        watching(server.connect_string) as watched,
    ):
        before_the_watches(monkeypatch, lambda: watched.writer.set(PATHS[0], b"1"))
        assert watched.read()[0].data == b"0"
        assert watched.marked() == {PATHS[0]}
        watched.read()
        check_each_is_watched(watched)
