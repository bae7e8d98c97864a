"""What is said by each mechanism to prove who one is."""

from __future__ import annotations

from collections.abc import Callable

from scramp import ScramClient

from streaming.setting_types import PLAIN
from streaming.wire.conversation import Conversation


def password_conversation(mechanism: str, user: str, password: str) -> Conversation:
    """Begin a login by a password: PLAIN, or one of SCRAM.

    Raises ScramException and UnicodeDecodeError where the other side does not know the password.
    """
    proof = _plain if mechanism == PLAIN else _scram
    return proof(mechanism, user, password)


def bearer_conversation(bearer: Callable[[], str]) -> Conversation:
    """Begin a login by a token (RFC 7628): who is refused hears why, and agrees.

    bearer: gives the token, with what follows it in the message; may block and raise OSError.
    """
    if (yield f"n,,\x01auth=Bearer {bearer()}\x01\x01".encode()):
        yield b"\x01"


def _plain(_: str, user: str, password: str) -> Conversation:
    """RFC 4616."""
    yield f"\0{user}\0{password}".encode()


def _scram(mechanism: str, user: str, password: str) -> Conversation:
    client = ScramClient([mechanism], user, password)
    first = yield client.get_client_first().encode()
    client.set_server_first(first.decode())
    final = yield client.get_client_final().encode()
    client.set_server_final(final.decode())
