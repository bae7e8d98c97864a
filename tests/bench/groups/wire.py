"""Many connections in one thread, one request in flight on each: epoll and nothing above it."""

from __future__ import annotations

import heapq
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence

Answered = Callable[[int, bytes], None]
"""Takes the number of the connection and its answer, without the size."""

_SIZE = struct.Struct(">i")
_CHUNK_BYTES = 1 << 18
_POLL_S = 1.0
_CONNECT_S = 60.0


class NoAnswer(Exception):
    """The other side closed a connection, or the time is over."""


class Wire:
    """Connections to one server; used by one thread."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._sockets: list[socket.socket] = []
        self._number: dict[int, int] = {}
        self._parts: dict[int, bytes] = {}
        self._later: list[tuple[float, int, bytes]] = []
        self._epoll = select.epoll()
        self._wake_s = time.perf_counter()
        self.failed = 0
        self.answered: Answered = lambda _number, _answer: None

    def connect(self, count: int) -> None:
        """Open connections until there are so many."""
        while len(self._sockets) < count:
            sock = socket.create_connection(self._address, timeout=_CONNECT_S)
            sock.settimeout(_CONNECT_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._number[sock.fileno()] = len(self._sockets)
            self._sockets.append(sock)
            self._epoll.register(sock.fileno(), select.EPOLLIN)

    def send(self, number: int, request: bytes) -> None:
        self._sockets[number].sendall(request)

    def send_later(self, delay_s: float, number: int, request: bytes) -> None:
        heapq.heappush(self._later, (time.perf_counter() + delay_s, number, request))

    def wake_in(self, delay_s: float) -> None:
        """Look at whether all is done after this time at the latest, once."""
        self._wake_s = time.perf_counter() + delay_s

    def run(self, done: Callable[[], bool], timeout_s: float) -> None:
        """Hand answers over until done; raises NoAnswer."""
        deadline = time.perf_counter() + timeout_s
        while not done():
            now = time.perf_counter()
            if now > deadline:
                raise NoAnswer(f"not done within {timeout_s} s")
            while self._later and self._later[0][0] <= now:
                _, number, request = heapq.heappop(self._later)
                self.send(number, request)
            wait_s = min(self._later[0][0] - now, _POLL_S) if self._later else _POLL_S
            wait_s, self._wake_s = min(wait_s, self._wake_s - now), now + _POLL_S
            for fileno, _ in self._epoll.poll(max(wait_s, 0)):
                self._receive(self._number[fileno])

    def _receive(self, number: int) -> None:
        data = self._sockets[number].recv(_CHUNK_BYTES)
        if not data:
            raise NoAnswer(f"connection {number} was closed")
        if number in self._parts:
            data = self._parts.pop(number) + data
        if len(data) >= _SIZE.size and len(data) >= _SIZE.size + _SIZE.unpack_from(data)[0]:
            self.answered(number, data[_SIZE.size :])
        else:
            self._parts[number] = data

    def flood(
        self,
        requests: Sequence[bytes],
        is_good: Callable[[bytes], bool],
        connections: int,
        seconds: float,
    ) -> list[float]:
        """Send requests in turn, one in flight on each connection, and return how long each took
        in s; what gets an answer that is not good is counted in `failed`. The same answer is looked
        at once. connections: all of them, where there are fewer.
        """
        connections = min(connections, len(self._sockets))
        took: list[float] = []
        good: set[bytes] = set()
        sent = [0.0] * connections
        clock, position, stop = time.perf_counter, 0, 0.0
        self.failed = 0

        def answered(number: int, answer: bytes) -> None:
            nonlocal position
            now = clock()
            if answer in good or is_good(answer):
                good.add(answer)
                took.append(now - sent[number])
            else:
                self.failed += 1
            if now < stop:
                sent[number] = now
                position += 1
                self.send(number, requests[position % len(requests)])

        self.answered = answered
        stop = clock() + seconds
        for number in range(connections):
            sent[number] = clock()
            self.send(number, requests[number % len(requests)])
        position = connections
        self.run(
            lambda: clock() >= stop and len(took) + self.failed == position, seconds + _CONNECT_S
        )
        return took

    def close(self) -> None:
        self._epoll.close()
        for sock in self._sockets:
            sock.close()
