"""Who we are, and how that is said to who wants to know it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TypeAlias

Conversation: TypeAlias = Generator[bytes, bytes, None]
"""What a client says by turns with what it hears; blocks where somebody else has to be asked first,
and raises OSError where that one fails.
"""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who we are, by which mechanism, and the proof.

    begin: begins what is said to a host, where a password does not do.
    """

    mechanism: str
    user: str
    password: str = field(default="", repr=False)
    begin: Callable[[str], Conversation] | None = field(default=None, repr=False)
