"""Connections in TLS: what is decrypted is not waited for, and a plain server is refused."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from streaming.keyfiles.renewed import RenewedContext, https_context
from streaming.zk.kazoo_client import ImpatientHandler
from tests.fixtures.certificates import Authority


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        yield server


def connect(authority: Authority, listening: socket.socket) -> socket.socket:
    handler = ImpatientHandler("127.0.0.1:1", 15_000, trusting(authority.trusted))
    address = listening.getsockname()
    found: socket.socket = handler.create_connection(address=address, hostname="127.0.0.1")
    return found


def trusting(path: Path) -> RenewedContext:
    return https_context("", str(path))


def test_answers_that_came_together_are_there_at_once(
    authority: Authority, listening: socket.socket
) -> None:
    """They may be one record: the socket has nothing more to read, and the second answer waits."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.keystore("server"))
    done = threading.Event()

    def serve() -> None:
        accepted, _ = listening.accept()
        with context.wrap_socket(accepted, server_side=True) as server:
            server.sendall(b"12")
            done.wait(20)

    serving = threading.Thread(target=serve)
    serving.start()
    handler = ImpatientHandler("127.0.0.1:1", 15_000)
    try:
        with closing(connect(authority, listening)) as client:
            assert handler.select([client], [], [], 20)[0] == [client]
            assert client.recv(1) == b"1"
            other, asked = handler.create_socket_pair()
            with closing(other), closing(asked):
                assert handler.select([client, asked], [], [], 20) == ([client], [], [])
                other.send(b"!")
                assert handler.select([client, asked], [], [], 20)[0] == [client, asked]
            assert client.recv(1) == b"2"
            assert handler.select([client], [], [], 0.05)[0] == []
    finally:
        done.set()
        serving.join(20)


def test_a_server_that_speaks_no_tls_is_refused(
    authority: Authority, listening: socket.socket
) -> None:
    def serve() -> None:
        accepted, _ = listening.accept()
        with accepted:
            accepted.recv(1)
            accepted.sendall(b"plain text")

    serving = threading.Thread(target=serve)
    serving.start()
    with pytest.raises(ssl.SSLError):
        connect(authority, listening)
    serving.join(20)
