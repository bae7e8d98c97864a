"""Tickets by which a log cluster knows this node, as kafka-python shows them.

Its own way to show tickets needs a package that is compiled where it is installed (ADR 29).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka.errors import KafkaConnectionError
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.abc import SaslMechanism

from streaming.tickets.client import kerberos_conversation
from streaming.tickets.jgss import Jgss


@dataclass(frozen=True, slots=True)
class TicketLogin:
    """Who logs in, and at which service; kafka-python hands it on to the mechanism."""

    jgss: Jgss
    service: str


class _Tickets(SaslMechanism):  # type: ignore[misc]
    """One login at one broker."""

    def __init__(self, *, host: str, sasl_kerberos_name: TicketLogin, **_: Any) -> None:
        login = sasl_kerberos_name
        self._conversation = kerberos_conversation(login.jgss, login.service, host)
        self._is_done = False
        with _tried_again():
            self._said = next(self._conversation)

    def auth_bytes(self) -> bytes:
        return self._said

    def receive(self, auth_bytes: bytes) -> None:
        try:
            with _tried_again():
                self._said = self._conversation.send(auth_bytes)
        except StopIteration:
            self._is_done = True

    def is_done(self) -> bool:
        return self._is_done

    def is_authenticated(self) -> bool:
        return self._is_done


def ticket_options(jgss: Jgss, service: str) -> dict[str, Any]:
    """Return what makes kafka-python's clients log in by tickets."""
    register_sasl_mechanism("GSSAPI", _Tickets, overwrite=True)
    return {"sasl_kerberos_name": TicketLogin(jgss, service)}


@contextmanager
def _tried_again() -> Iterator[None]:
    """Have a client try again: who gives tickets may be back then."""
    try:
        yield
    except OSError as error:  # GssFailed and JvmFailed are two
        raise KafkaConnectionError(str(error)) from error
