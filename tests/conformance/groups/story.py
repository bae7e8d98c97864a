"""One scenario while it runs: the world, what was sent, what was bound, what was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from state.protocol_errors import ProtocolError
from tests.conformance.groups.matching import bound
from tests.conformance.groups.replies import reply_of
from tests.conformance.groups.world import World
from tests.conformance.verdict import Findings, NotUnderstoodError


@dataclass(slots=True)
class Story:
    """What a scenario's steps share.

    requests: bodies by alias. names: values by bound name. verification: what checking the
    transaction of the next TxnOffsetCommit ends with.
    """

    config: dict[str, Any]
    world: World = field(default_factory=World)
    found: Findings = field(default_factory=Findings)
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)
    verification: ProtocolError = ProtocolError.NONE

    def bound(self, value: Any) -> Any:
        """Return a value with bound names replaced."""
        return bound(value, self.names)

    def reply(self, alias: str) -> dict[str, Any] | None:
        """Return a reply's fields, None while it waits."""
        if alias not in self.requests:
            raise NotUnderstoodError(f"nothing was sent as {alias!r}")
        return reply_of(self.world, alias, self.requests[alias])

    def value(self, path: str) -> Any:
        """Return the value of a reply at "alias.field"; None while there is no reply."""
        alias, *fields = path.split(".")
        came: Any = self.reply(alias)
        for name in fields:
            came = came[int(name)] if isinstance(came, list) else (came or {}).get(name)
        return came

    def only_group(self) -> str:
        """Return the group of the scenario, the first one that was named."""
        groups = [*self.world.image.groups]
        for request in self.requests.values():
            groups += [request.get("group"), *request.get("groups", [])]
        return next((one for one in groups if one), "")
