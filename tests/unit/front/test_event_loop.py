"""Calls to the front's event loop from other threads."""

from __future__ import annotations

import asyncio

import pytest

from streaming.front.event_loop import call_from_thread


def test_a_thread_calls_back_on_the_loop():
    async def called():
        loop = asyncio.get_running_loop()
        found = loop.create_future()
        await asyncio.to_thread(call_from_thread, loop, found.set_result, 7)
        return await asyncio.wait_for(found, 10)

    assert asyncio.run(called()) == 7


def test_a_loop_that_has_ended_is_called_no_more():
    loop = asyncio.new_event_loop()
    loop.close()
    call_from_thread(loop, lambda: pytest.fail("it is closed"))


def test_other_errors_are_told():
    class Broken(asyncio.SelectorEventLoop):
        def call_soon_threadsafe(self, *_: object, **__: object):
            raise RuntimeError("another one")

    loop = Broken()
    try:
        with pytest.raises(RuntimeError, match="another one"):
            call_from_thread(loop, print)
    finally:
        loop.close()
