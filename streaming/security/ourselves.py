"""Who we are to brokers and ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from streaming.wire.conversation import Conversation


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who we are, by which mechanism, and the proof.

    begin: begins what is said to a host, where a password does not do.
    """

    mechanism: str
    user: str
    password: str = field(default="", repr=False)
    begin: Callable[[str], Conversation] | None = field(default=None, repr=False)
