"""Who somebody turns out to be who logs in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Identity:
    """Who somebody turned out to be: a principal such as User:alice.

    by_token: by a delegation token of its. end_ms: until when, by the wall clock, None for ever.
    """

    principal: str
    by_token: bool = False
    end_ms: int | None = None


class Refused(Exception):
    """Somebody is not who it says it is; the message is for our log only."""


class Undecided(Exception):
    """It cannot be found out now; the message says why."""


class SaslServer(Protocol):
    """One client's side of whom is being found out; identity: once it is complete."""

    identity: Identity | None

    async def respond(self, token: bytes) -> bytes:
        """Return the answer to what the client said; raises Refused and Undecided."""
        ...
