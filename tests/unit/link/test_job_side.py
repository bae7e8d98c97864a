"""The job's end of the link against a front that goes away, comes back, and dribbles bytes."""

from __future__ import annotations

import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.link import job_side
from streaming.link.job_side import AppendRefused, JobLink, LinkDown
from streaming.link.messages import (
    HEADER_BYTES,
    Message,
    decode_message,
    encode_message,
    frame_lengths,
)
from streaming.log.api import NewRecord
from tests.fixtures.waiting import WAIT_S

EVENT = NewRecord("kind", "key", b"payload")


class Front:
    """A listening socket; `accept` is the next connection of the job."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listen()

    def listen(self) -> None:
        self.path.unlink(missing_ok=True)
        self.server = socket.socket(socket.AF_UNIX)
        self.server.settimeout(WAIT_S)
        self.server.bind(str(self.path))
        self.server.listen()

    def accept(self) -> Connection:
        accepted, _ = self.server.accept()
        accepted.settimeout(WAIT_S)
        return Connection(accepted)

    def close(self) -> None:
        self.server.close()


class Connection:
    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.stream = accepted.makefile("rb")

    def read(self) -> Message:
        head, body = frame_lengths(self.stream.read(HEADER_BYTES))
        return decode_message(self.stream.read(head), self.stream.read(body))

    def say(self, head: dict, *, pieces: int | None = None) -> None:
        frame = encode_message(head)
        step = len(frame) if pieces is None else pieces
        for start in range(0, len(frame), step):
            self.socket.sendall(frame[start : start + step])

    def close(self) -> None:
        self.stream.close()
        self.socket.close()


@pytest.fixture
def front(monkeypatch) -> Iterator[Front]:
    monkeypatch.setattr(job_side, "_RETRY_S", 0.01)
    with tempfile.TemporaryDirectory(prefix="hs-") as folder:
        front = Front(Path(folder) / "link.sock")
        yield front
        front.close()


@pytest.fixture
def link(front) -> Iterator[JobLink]:
    link = JobLink(front.path, on_connected=lambda one: one.send({"type": "image"}, b"whole"))
    link.start()
    yield link
    link.stop()


class Appending:
    """An append on a thread of its own; `result` is the offset or the error."""

    def __init__(self, link: JobLink, timeout_s: float = WAIT_S) -> None:
        self.found: int | LinkDown | AppendRefused | None = None
        self.thread = threading.Thread(target=self.run, args=(link, timeout_s), daemon=True)
        self.thread.start()

    def run(self, link: JobLink, timeout_s: float) -> None:
        try:
            self.found = link.append([EVENT, EVENT], timeout_s)
        except (LinkDown, AppendRefused) as error:
            self.found = error

    def result(self) -> int | LinkDown | AppendRefused | None:
        self.thread.join(WAIT_S)
        return self.found


def greeted(front: Front) -> Connection:
    connection = front.accept()
    assert connection.read().type == "hello"
    image = connection.read()
    assert (image.type, image.body) == ("image", b"whole")
    return connection


def test_without_a_front_nothing_can_be_said_and_nobody_waits(front):
    link = JobLink(front.path.with_name("nobody.sock"), on_connected=lambda _: None)
    link.start()
    with pytest.raises(LinkDown, match=r"no front listens on .*nobody\.sock"):
        link.append([EVENT])
    link.stop()
    link.stop()


@pytest.mark.parametrize("pieces", [None, 1, 3, 11])
def test_an_append_returns_what_the_front_confirms(front, link, pieces):
    connection = greeted(front)
    appending = Appending(link)
    request = connection.read()
    assert request.head["records"] == [["kind", "key", 7]] * 2
    assert request.body == b"payload" * 2
    connection.say({"type": "appended", "id": 99, "start": 1}, pieces=pieces)
    connection.say({"type": "something new"}, pieces=pieces)
    connection.say({"type": "appended", "id": request.head["id"], "start": 41}, pieces=pieces)
    assert appending.result() == 41
    connection.close()


def test_appends_are_confirmed_in_any_order(front, link):
    connection = greeted(front)
    first = Appending(link)
    first_id = connection.read().head["id"]
    second = Appending(link)
    second_id = connection.read().head["id"]
    connection.say({"type": "appended", "id": second_id, "start": 2})
    assert second.result() == 2
    connection.say({"type": "appended", "id": first_id, "start": 1})
    assert first.result() == 1
    connection.close()


def test_a_front_that_goes_away_mid_append_fails_it_and_comes_back_to_the_whole_image(front, link):
    connection = greeted(front)
    appending = Appending(link)
    connection.read()
    connection.close()
    assert isinstance(appending.result(), LinkDown)
    again = greeted(front)
    appending = Appending(link)
    again.say({"type": "appended", "id": again.read().head["id"], "start": 7})
    assert appending.result() == 7
    again.close()


def test_a_front_that_dies_in_the_middle_of_an_answer(front, link):
    connection = greeted(front)
    appending = Appending(link)
    connection.read()
    connection.socket.sendall(struct.pack("<II", 50, 0) + b'{"type":"appen')
    connection.close()
    assert isinstance(appending.result(), LinkDown)
    greeted(front).close()


@pytest.mark.parametrize(("said", "error"), [("refused", AppendRefused), ("error", LinkDown)])
def test_an_append_that_fails_says_why_and_whether_for_good(front, link, said, error):
    connection = greeted(front)
    appending = Appending(link)
    connection.say({"type": "appended", "id": connection.read().head["id"], said: "too large"})
    assert isinstance(appending.result(), error)
    assert "too large" in str(appending.result())
    connection.close()


def test_a_front_that_does_not_answer_in_time(front, link):
    connection = greeted(front)
    assert "did not confirm an append in 0.05 s" in str(Appending(link, 0.05).result())
    connection.close()


@pytest.mark.parametrize(
    "frame", [struct.pack("<II", 2, 0) + b"{]", struct.pack("<II", 2, 0) + b"{}"]
)
def test_a_broken_message_costs_its_connection_only(front, link, frame, caplog):
    connection = greeted(front)
    connection.socket.sendall(frame)
    again = greeted(front)
    assert "the front sent a broken message" in caplog.text
    again.close()
    connection.close()


def test_nobody_says_anything_before_hello_and_the_image(front):
    """Decisions that come before hello would be a stranger's."""
    inside, go_on = threading.Event(), threading.Event()

    def slow_image(link: JobLink) -> None:
        inside.set()
        go_on.wait(WAIT_S)
        link.send({"type": "image"})

    link = JobLink(front.path, on_connected=slow_image)
    with pytest.raises(LinkDown):
        link.send({"type": "early"})
    link.start()
    connection = front.accept()
    assert inside.wait(WAIT_S)
    link.send({"type": "decisions"})
    go_on.set()
    assert [connection.read().type for _ in range(3)] == ["hello", "decisions", "image"]
    link.stop()
    connection.close()


def test_a_front_that_does_not_read_does_not_keep_the_job_from_stopping(front, link):
    connection = greeted(front)
    failed = threading.Event()

    def fill() -> None:
        with pytest.raises(LinkDown):
            while True:
                link.send({"type": "decisions"}, bytes(1 << 20))
        failed.set()

    threading.Thread(target=fill, daemon=True).start()
    while not link._lock.locked():
        assert not failed.wait(0.005)
    link.stop()
    assert failed.wait(WAIT_S)
    connection.close()


def test_a_front_that_restarts_on_the_same_path_is_found(front, link):
    greeted(front).close()
    front.close()
    front.listen()
    greeted(front).close()


def test_what_nobody_expects_ends_the_job(front):
    def broken_image(link: JobLink) -> None:
        raise RuntimeError("changed size during iteration")

    link = JobLink(front.path, on_connected=broken_image)
    link.check()
    link.start()
    connection = front.accept()
    link._thread.join(WAIT_S)
    with pytest.raises(RuntimeError, match="changed size"):
        link.check()
    with pytest.raises(LinkDown):
        link.append([EVENT])
    link.stop()
    connection.close()
