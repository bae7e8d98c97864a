"""In which order members are answered: who leads a group comes before those who follow.

The job decides next what leaders send, the assignments; a SyncGroup of another member becomes no
event (`direct_syncs`). So when many groups rebalance at once, their leaders do not wait until the
front has answered all others and read what these ask then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from streaming.front.groups.decisions import HandReplies
from streaming.gateway.ports import ReplyBody

_PER_TURN = 20
"""Members that do not lead, of all groups, that are answered in one turn of the loop."""


class GroupReplies:
    """Hands replies about groups to waiting requests; lives on the front's event loop."""

    def __init__(self, answer: HandReplies) -> None:
        """answer: hands replies on at once."""
        self._answer = answer
        self._later: list[ReplyBody] = []

    def answer(self, replies: Iterable[ReplyBody]) -> None:
        """Hand replies on; those to JoinGroup that name no members, from the next turn on."""
        for reply in replies:
            if reply.get("members") == []:
                self._hand_later(reply)
            else:
                self._answer([reply])

    def _hand_later(self, reply: ReplyBody) -> None:
        if not self._later:
            asyncio.get_running_loop().call_soon(self._hand_some)
        self._later.append(reply)

    def _hand_some(self) -> None:
        some, self._later = self._later[:_PER_TURN], self._later[_PER_TURN:]
        if self._later:
            asyncio.get_running_loop().call_soon(self._hand_some)
        self._answer(some)
