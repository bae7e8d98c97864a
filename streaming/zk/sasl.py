"""Who we are, as kazoo tells ZooKeeper: by a password, or by a ticket of Kerberos."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from puresasl.mechanisms import Mechanism, mechanisms

from streaming.security.ourselves import Credentials
from streaming.wire.conversation import Conversation


class _Conversing(Mechanism):
    """A mechanism of puresasl that says to a host what somebody else knows to say."""

    def __init__(self, sasl: Any, begin: Callable[[str], Conversation], **props: Any) -> None:
        super().__init__(sasl, **props)
        self._conversation = begin(sasl.host)

    def process(self, challenge: bytes | None = None) -> bytes | None:
        """Return what follows on what was heard, at first nothing; raises as the conversation."""
        try:
            if challenge is None:
                return next(self._conversation)
            return self._conversation.send(challenge)
        except StopIteration:
            self.complete = True
            return None


def sasl_options(ours: Credentials) -> dict[str, Any]:
    """Return who we are as kazoo takes it."""
    if ours.begin is None:
        return {"mechanism": ours.mechanism, "username": ours.user, "password": ours.password}
    # puresasl's own needs a package that is compiled where it is installed.
    mechanisms[ours.mechanism] = _Conversing
    return {"mechanism": ours.mechanism, "begin": ours.begin}
