"""What is known of groups and their clients from answers, as a client would know it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from state.protocol_errors import ProtocolError
from streaming.wire.apis import ApiKey
from tests.differential.groups.side import Request

NO_GENERATION = -1
STABLE, EMPTY, DEAD = "Stable", "Empty", "Dead"
PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"
_PROTOCOL = "range"
_STATIC = {"dynamic": "", "mixed": "d", "static": "abcd", "hasty": "d"}
"""Of each group, which of its clients are static."""
_HASTY = "hasty"
_FORGETS = frozenset({ProtocolError.UNKNOWN_MEMBER_ID, ProtocolError.FENCED_INSTANCE_ID})


@dataclass(slots=True)
class Client:
    """A client of a group, static if it has an instance id. members: all of them, at the leader.

    protocols: those that it would have, the dearest first. is_short: its session ends soon.
    waits_for: what was not answered yet.
    """

    name: str
    instance_id: str | None = None
    member_id: str = ""
    generation: int = NO_GENERATION
    protocol: str = _PROTOCOL
    members: list[str] = field(default_factory=list)
    protocols: list[str] = field(default_factory=list)
    is_short: bool = False
    waits_for: ApiKey | None = None

    def forget(self) -> None:
        """Be nobody's member."""
        self.member_id, self.generation, self.members = "", NO_GENERATION, []
        self.is_short = False


@dataclass(slots=True)
class Group:
    """A group; state: as coordinators describe it. is_hasty: its members have to rejoin soon.
    leader: of its last generation.
    """

    prefix: str
    clients: list[Client]
    is_hasty: bool = False
    state: str = DEAD
    round: int = 1
    leader: str = ""

    @property
    def group_id(self) -> str:
        """Its id; another one once it was given up."""
        return f"{self.prefix}-{self.round}"

    @property
    def free(self) -> list[Client]:
        """Clients that wait for nothing."""
        return [one for one in self.clients if one.waits_for is None]

    @property
    def known(self) -> list[Client]:
        """Clients that have an id."""
        return [one for one in self.clients if one.member_id]

    @property
    def members(self) -> list[Client]:
        """Clients that have a generation, and wait for nothing."""
        return [one for one in self.free if one.generation != NO_GENERATION]

    def favourites(self, generation: int) -> set[str]:
        """Return the protocols that most members of a generation would have, of those that all of
        them know; who joined it may not have heard so yet.
        """
        joined = [
            one.protocols
            for one in self.clients
            if one.waits_for is ApiKey.JOIN_GROUP or one.generation == generation
        ]
        known = set.intersection(*map(set, joined))
        votes = Counter(next(one for one in names if one in known) for names in joined)
        return {name for name, count in votes.items() if count == max(votes.values())}

    def give_up(self) -> None:
        """Go on as another one."""
        self.round, self.state, self.leader = self.round + 1, DEAD, ""
        for client in self.clients:
            client.forget()
            client.waits_for = None


class Model:
    """All groups of a run."""

    def __init__(self, seed: int) -> None:
        """Have groups with ids that no other seed's have, and nobody in them."""
        self.groups = [_group(f"{kind}-{seed}", kind) for kind in _STATIC]
        self.clients = {one.name: one for group in self.groups for one in group.clients}

    def group_of(self, client: str) -> Group | None:
        """Return the group of a client, None of who is in none."""
        return next((one for one in self.groups if self.clients.get(client) in one.clients), None)

    @property
    def ending(self) -> list[Client]:
        """Clients of which nothing is heard any more, and whose session is short."""
        return [one for one in self.clients.values() if one.is_short and one.waits_for is None]

    @property
    def is_in_a_hurry(self) -> bool:
        """Whether something ends soon by itself."""
        rebalancing = (PREPARING, COMPLETING)
        hasty = any(one.is_hasty and one.state in rebalancing for one in self.groups)
        return hasty or bool(self.ending)

    def asked(self, request: Request) -> None:
        """A client has asked."""
        if request.client in self.clients:
            client = self.clients[request.client]
            client.waits_for = request.api
            if request.api is ApiKey.JOIN_GROUP:
                client.protocols = [one["name"] for one in request.body["protocols"]]

    def answered(self, request: Request, answer: Mapping[str, Any] | str) -> None:
        """A client has an answer, the same of both."""
        client = self.clients.get(request.client)
        if client is None:
            return
        client.waits_for = None
        if isinstance(answer, str):  # CLOSED
            return
        error = answer.get("error_code", 0)
        if error in _FORGETS:
            client.forget()
        elif request.api is ApiKey.JOIN_GROUP:
            _joined(client, answer)
            group = self.group_of(client.name)
            if group is not None and not error:
                group.leader = answer["leader"]
        elif request.api is ApiKey.LEAVE_GROUP and not error:
            client.forget()

    def hung_up(self) -> None:
        """Nobody waits any more, and sessions began anew."""
        for client in self.clients.values():
            client.waits_for = None

    def described(self, groups: Iterable[Mapping[str, Any]]) -> None:
        """Both have described the groups, in the same way."""
        states = {one["group_id"]: one["group_state"] for one in groups}
        for group in self.groups:
            group.state = states[group.group_id]


def _group(prefix: str, kind: str) -> Group:
    clients = [
        Client(f"{kind}-{letter}", f"instance-{letter}" if letter in _STATIC[kind] else None)
        for letter in "abcd"
    ]
    return Group(prefix, clients, is_hasty=kind == _HASTY)


def _joined(client: Client, answer: Mapping[str, Any]) -> None:
    client.member_id = answer["member_id"]
    if answer["error_code"]:
        client.generation = NO_GENERATION
        return
    client.generation, client.protocol = answer["generation_id"], answer["protocol_name"]
    leads = answer["leader"] == client.member_id
    client.members = [one["member_id"] for one in answer["members"]] if leads else []
