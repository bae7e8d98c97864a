"""One of two coordinators: clients' connections to it, and what it calls their members.

A coordinator draws members' ids by chance. Here a member is called by its client and by how many
ids that client was given before, the same on both sides: `a.1`.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from state.protocol_errors import ProtocolError
from streaming.wire.apis import ApiKey
from streaming.wire.frames import frame
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response

CLOSED = "closed"
_CHUNK_BYTES = 1 << 16
_CONNECT_S = 10.0
_LENGTH_BYTES = 4
_GIVES_AN_ID = frozenset({ProtocolError.NONE, ProtocolError.MEMBER_ID_REQUIRED})
_MEMBER_FIELDS = frozenset({"member_id", "leader"})
_PRODUCER_FIELD = "producer_id"


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks: the body calls members as this module does."""

    client: str
    api: ApiKey
    version: int
    body: Mapping[str, Any]

    def __str__(self) -> str:
        fields = " ".join(f"{name}={value!r}" for name, value in self.body.items())
        return f"{self.client}: {self.api.name} v{self.version} {fields}"


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    request: Request | None = None
    received: bytearray = field(default_factory=bytearray)


class Side:
    """A coordinator at an address; used by one thread."""

    def __init__(self, address: tuple[str, int], begin: Callable[[str], int]) -> None:
        """Connect when somebody asks something. begin: begins a group's transaction."""
        self._address = address
        self._begin = begin
        self._producers: dict[str, int] = {}
        self._selector = selectors.DefaultSelector()
        self._connections: dict[str, _Connection] = {}
        self._name_of: dict[str, str] = {}
        self._id_of: dict[str, str] = {}
        self._given: dict[str, int] = {}
        self._answers: dict[str, Any] = {}

    @property
    def waiting(self) -> set[str]:
        """Clients that have no answer yet."""
        return {name for name, one in self._connections.items() if one.request is not None}

    def send(self, request: Request) -> None:
        """Send what a client asks, which waits for nothing."""
        connection = self._connections.get(request.client) or self._connect(request.client)
        assert connection.request is None, f"{request.client} waits for an answer"
        connection.request = request
        body = self._with(request.body, self._id_of)
        data = encode_request(request.api, request.version, 1, request.client, body)
        connection.socket.sendall(frame(data))

    def receive(self, timeout_s: float) -> bool:
        """Receive what comes first, and return whether something did; a connection that is closed
        is an answer too.
        """
        readable = self._selector.select(timeout_s)
        for key, _ in readable:
            client, connection = key.data, self._connections[key.data]
            try:
                data = connection.socket.recv(_CHUNK_BYTES)
            except ConnectionError:
                data = b""
            connection.received += data
            if not data:
                self.hang_up(client)
                self._answers[client] = CLOSED
            elif (answer := self._answer(connection)) is not None:
                self._answers[client] = answer
        return bool(readable)

    def take(self, client: str) -> Any:
        """Take the answer to a client, in which members are called as everywhere, or None."""
        return self._with(self._answers.pop(client, None), self._name_of)

    @property
    def answered(self) -> set[str]:
        """Clients whose answers were not taken."""
        return {*self._answers}

    def _answer(self, connection: _Connection) -> dict[str, Any] | None:
        received, request = connection.received, connection.request
        size = int.from_bytes(received[:_LENGTH_BYTES], "big")
        if len(received) < _LENGTH_BYTES + size:
            return None
        assert request is not None, "an answer that nobody waits for"
        data = bytes(received[_LENGTH_BYTES : _LENGTH_BYTES + size])
        del received[: _LENGTH_BYTES + size]
        connection.request = None
        answer = decode_response(request.api, request.version, data)[1]
        self._learn(request, answer)
        return answer

    def _learn(self, request: Request, answer: Any) -> None:
        """Hear of the id that a client was given."""
        if request.api is not ApiKey.JOIN_GROUP:
            return
        client, member_id = request.client, answer["member_id"]
        if member_id and answer["error_code"] in _GIVES_AN_ID and member_id not in self._name_of:
            self._given[client] = self._given.get(client, 0) + 1
            name = f"{client}.{self._given[client]}"
            self._name_of[member_id], self._id_of[name] = name, member_id

    def _with(self, part: Any, members: Mapping[str, str]) -> Any:
        match part:
            case Mapping():
                return {key: self._called(key, value, members) for key, value in part.items()}
            case list():
                return [self._with(one, members) for one in part]
            case _:
                return part

    def _called(self, key: str, value: Any, members: Mapping[str, str]) -> Any:
        if key == _PRODUCER_FIELD:
            return self._producer(value)
        if key in _MEMBER_FIELDS and isinstance(value, str):
            return members.get(value, value)
        return self._with(value, members)

    def _producer(self, value: str | int) -> str | int:
        """Return a group's producer, or whose one is."""
        if isinstance(value, int):
            return next(name for name, one in self._producers.items() if one == value)
        if value not in self._producers:
            self._producers[value] = self._begin(value)
        return self._producers[value]

    def _connect(self, client: str) -> _Connection:
        opened = socket.create_connection(self._address, timeout=_CONNECT_S)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(opened, selectors.EVENT_READ, client)
        connection = self._connections[client] = _Connection(opened)
        return connection

    def begin_anew(self, client: str, given: int) -> None:
        """Hang up for a client, whatever it was answered, and count its ids from a number on."""
        self._given[client] = given
        self.hang_up(client)

    def hang_up(self, client: str) -> None:
        """Close a client's connection, whatever it was answered."""
        self._answers.pop(client, None)
        connection = self._connections.pop(client, None)
        if connection is None:
            return
        self._selector.unregister(connection.socket)
        connection.socket.close()

    def move(self, address: tuple[str, int]) -> None:
        """Hang up for all clients, who go on elsewhere."""
        self._address = address
        for client in [*self._connections]:
            self.hang_up(client)

    def close(self) -> None:
        """Hang up for all clients."""
        self.move(self._address)
        self._selector.close()
