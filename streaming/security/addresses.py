"""Connects to a name that may have several addresses."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

_NEXT_ADDRESS_S = 1.5
"""Time enough for a first packet that is lost once, which goes out again after a second."""


async def connect(host: str, port: int) -> socket.socket:
    """Return a socket that is connected to the first address of a name that answers, in the order
    of the resolver; one that says nothing costs 1.5 s, the last one as long as the caller waits.

    Raises OSError, of every address, and ValueError for a host that is none.
    """
    found = await _resolved(host, port)
    failures: list[OSError] = []
    for left, (family, kind, protocol, _, address) in zip(
        reversed(range(len(found))), found, strict=True
    ):
        try:
            async with asyncio.timeout(_NEXT_ADDRESS_S if left else None):
                return await _connected(socket.socket(family, kind, protocol), address)
        except OSError as error:
            silent = ConnectionError(f"{address} did not answer within {_NEXT_ADDRESS_S} s")
            failures.append(error if error.errno else silent)
    if len(failures) == 1:
        raise failures[0]
    raise ConnectionError("; ".join(map(str, failures)) or f"{host} has no address")


async def _resolved(host: str, port: int) -> list[Any]:
    try:  # an address needs no thread, which may be waiting for a resolver
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        loop = asyncio.get_running_loop()
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def _connected(opened: socket.socket, address: tuple[str | int, ...]) -> socket.socket:
    try:
        opened.setblocking(False)
        await asyncio.get_running_loop().sock_connect(opened, address)
    except BaseException:
        opened.close()
        raise
    return opened
