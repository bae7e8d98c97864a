"""Turns of an event loop, which pass without waiting for any time."""

from __future__ import annotations

import asyncio


async def pass_the_loop(turns: int = 5) -> None:
    """Let the loop come round: what is ready happens, and what that makes ready."""
    for _ in range(turns):
        await asyncio.sleep(0)
