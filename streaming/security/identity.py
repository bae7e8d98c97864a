"""Who somebody turns out to be who logs in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from streaming.embedded.jvm import KeptObject


@dataclass(frozen=True, slots=True)
class Identity:
    """Who somebody turned out to be: a principal such as User:alice.

    by_token: by a delegation token of its. end_ms: until when, by the wall clock, None for ever.
    java_server: the SaslServer of Java's that found it out, in a JVM, None where none did.
    """

    principal: str
    by_token: bool = False
    end_ms: int | None = None
    java_server: KeptObject | None = field(default=None, compare=False, repr=False)

    @property
    def authorization_id(self) -> str:
        """Under which name it came (SaslServer.getAuthorizationID)."""
        return self.principal.partition(":")[2]


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
