"""The front's end of the link: one job is listened to, and others are served meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from streaming.front.link_server import LinkServer
from streaming.link.messages import Message, encode_message
from tests.fixtures.waiting import WAIT_S, wait_on_loop


class Handler:
    """Takes each message in three steps, and waits in front of the last one when told to."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int]] = []
        self.bodies: list[bytes] = []
        self.pids: list[int] = []
        self.gone = 0

    def job_connected(self, pid: int) -> None:
        self.pids.append(pid)

    def job_gone(self) -> None:
        self.gone += 1

    def job_said(self, message: Message) -> Iterator[None]:
        self.bodies.append(bytes(message.body))
        for step in range(message.head.get("steps", 3)):
            self.steps.append((message.type, step))
            yield


def nothing(_records: object) -> Future[range]:
    raise AssertionError("nobody appends here")


async def until(true) -> None:
    await wait_on_loop("what the server does", true, poll_s=0)


def with_server(folder: Path, scenario) -> Handler:
    """Run a scenario(handler, connect) beside a server; connect(pid) is a job's stream."""

    async def run() -> Handler:
        handler = Handler()
        server = LinkServer(folder / "link.sock", nothing, handler)
        writers: list[asyncio.StreamWriter] = []
        await server.start()

        async def connect(pid: int) -> asyncio.StreamWriter:
            _, writer = await asyncio.open_unix_connection(folder / "link.sock")
            writer.write(encode_message({"type": "hello", "pid": pid}))
            writers.append(writer)
            await until(lambda: handler.pids[-1:] == [pid])
            return writer

        try:
            await scenario(handler, connect)
        finally:
            for writer in writers:
                writer.close()
            await until(lambda: handler.gone == len(handler.pids))
            await server.stop()
        return handler

    return asyncio.run(run())


def test_messages_are_taken_in_order_and_others_are_served_between_their_steps(tmp_path):
    turns: list[int] = []

    async def scenario(handler, connect):
        job = await connect(1)
        job.write(encode_message({"type": "first"}) + encode_message({"type": "second"}))

        async def another() -> None:
            while len(handler.steps) < 6:
                turns.append(len(handler.steps))
                await asyncio.sleep(0)

        await asyncio.wait_for(another(), WAIT_S)

    handler = with_server(tmp_path, scenario)
    assert handler.steps == [(kind, step) for kind in ("first", "second") for step in range(3)]
    assert {1, 2, 4, 5} <= set(turns)


def test_a_body_of_any_size_arrives_as_it_was_sent(tmp_path):
    bodies = [bytes(size % 251 for size in range(length)) for length in (0, 5, 1 << 18, 700_001)]

    async def scenario(handler, connect):
        job = await connect(1)
        for body in bodies:
            job.write(encode_message({"type": "image", "steps": 1}, body))
        await until(lambda: len(handler.bodies) == len(bodies))

    assert with_server(tmp_path, scenario).bodies == bodies


def test_the_rest_of_a_message_is_left_when_another_job_has_come(tmp_path):
    endless = 1 << 30

    async def scenario(handler, connect):
        old = await connect(1)
        old.write(encode_message({"type": "endless", "steps": endless}))
        await until(lambda: len(handler.steps) > 2)
        new = await connect(2)
        new.write(encode_message({"type": "new", "steps": 1}))
        await until(lambda: ("new", 0) in handler.steps)
        at = len(handler.steps)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(handler.steps) == at

    assert with_server(tmp_path, scenario).pids == [1, 2]
