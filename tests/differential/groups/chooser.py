"""Draws what clients of groups ask: so that groups get on, mostly as clients would, but not all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from streaming.wire.apis import APIS, ApiKey
from tests.differential.groups import requests as asking
from tests.differential.groups.model import COMPLETING, DEAD, EMPTY, STABLE, Client, Group, Model
from tests.differential.groups.requests import LONG_MS, SHORT_MS, Body, Offset
from tests.differential.groups.side import Request

TOPICS = ("t", "u")
PARTITIONS = 3
OUTSIDER = "outsider"
"""A client that is in no group."""
_NOBODY = "nobody"
_ANOTHER = "instance-d"
_PROTOCOLS = (["range"], ["range", "roundrobin"], ["roundrobin", "range"])
_WRONG_JOINS: Sequence[Body] = (
    {"member_id": _NOBODY},
    {"session_timeout_ms": 1},
    {"session_timeout_ms": 100_000_000},
    {"protocol_type": "connect"},
    {"protocol_type": ""},
    {"protocols": []},
    {"protocols": [{"name": "other", "metadata": b""}]},
    {"group_id": ""},
    {"group_instance_id": _ANOTHER},
)
_WRONG_MEMBERS: Sequence[Body] = (
    {"member_id": _NOBODY},
    {"generation_id": 1_000},
    {"generation_id": 1},
    {"generation_id": -1},
    {"group_instance_id": _ANOTHER},
    {"group_id": ""},
)
_WRONG_SYNCS: Sequence[Body] = (
    *_WRONG_MEMBERS,
    {"protocol_type": "connect"},
    {"protocol_name": "other"},
    {"assignments": []},
)
_WRONG_COMMITS: Sequence[Body] = (
    {"member_id": _NOBODY},
    {"generation_id_or_member_epoch": 1_000},
    {"generation_id_or_member_epoch": -1},
    {"group_instance_id": _ANOTHER},
    {"group_id": ""},
)


@dataclass(frozen=True, slots=True)
class Step:
    """Requests that are sent one right after the other. reconnecting: clients that give up waiting
    before, and hang up.
    """

    requests: Sequence[Request]
    reconnecting: Sequence[Client] = ()

    def __str__(self) -> str:
        again = [f"{one.name} connects again" for one in self.reconnecting]
        return "; ".join([*again, *map(str, self.requests)])


class Chooser:
    """Draws steps: the same for the same seed and the same answers."""

    def __init__(self, random: Random, model: Model) -> None:
        self._random = random
        self._model = model
        self._shares: dict[Callable[[Group], list[Request]], Callable[[Group], int]] = {
            self._join: lambda group: 4 if group.state == STABLE else 12,
            self._all_join: lambda group: 1 if group.state in (COMPLETING, EMPTY, DEAD) else 8,
            self._restart: lambda group: 1,
            self._sync: lambda group: 12 if group.state == COMPLETING else 2,
            self._all_sync: lambda group: 20 if group.state == COMPLETING else 1,
            self._heartbeat: lambda group: 4,
            self._leave: lambda group: 4,
            self._leave_for_others: lambda group: 2,
            self._commit: lambda group: 6,
            self._commit_from_outside: lambda group: 2,
            self._commit_in_transaction: lambda group: 3,
            self._end_transaction: lambda group: 2,
            self._delete_offset: lambda group: 2,
            self._delete_group: lambda group: 2,
            self._fetch: lambda group: 2,
            self._describe: lambda group: 1,
            self._list: lambda group: 1,
        }

    def next(self) -> Step:
        """Return the next step."""
        while True:
            group = self._random.choice(self._model.groups)
            if self._seldom(20) and (step := self._repeat(group)):
                return step
            shares = [share(group) for share in self._shares.values()]
            (action,) = self._random.choices([*self._shares], shares)
            if requests := action(group):
                return Step(requests)

    def _repeat(self, group: Group) -> Step | None:
        """A client that waits gives up, and asks again."""
        waiting = [one for one in group.clients if one.waits_for is not None]
        if not waiting:
            return None
        client = self._random.choice(waiting)
        joins = client.waits_for is ApiKey.JOIN_GROUP
        client.waits_for = None
        again = self._joining(group, client) if joins else self._sync_of(group, client)
        return Step([again], reconnecting=[client])

    def _seldom(self, one_in: int = 12) -> bool:
        return self._random.randrange(one_in) == 0

    def _request(
        self, client: Client | None, api: ApiKey, body: Body, wrong: Sequence[Body] = ()
    ) -> Request:
        """Return a request in some version, seldom with something wrong. One of a client that waits
        comes from elsewhere.
        """
        if wrong and self._seldom():
            body = body | self._random.choice(wrong)
        version = self._random.randint(asking.since(api, body), APIS[api].max_version)
        elsewhere = client is None or client.waits_for is not None
        return Request(OUTSIDER if elsewhere else client.name, api, version, body)

    # ---------------------------------------------------------------- generations
    def _join(self, group: Group) -> list[Request]:
        if not group.free:
            return []
        client = self._random.choice(group.free)
        is_new = not client.member_id
        if client.instance_id is not None and self._seldom(3):
            client.member_id = ""
        # A new static member that is replaced while it waits: known, and not to be told apart.
        client.is_short = not (client.instance_id and is_new) and self._seldom()
        return [self._joining(group, client, _WRONG_JOINS)]

    def _all_join(self, group: Group) -> list[Request]:
        free = [one for one in group.known if one.waits_for is None]
        return [self._joining(group, one) for one in free]

    def _restart(self, group: Group) -> list[Request]:
        """A client forgets who it was."""
        if not group.free:
            return []
        client = self._random.choice(group.free)
        client.forget()
        return [self._joining(group, client)]

    def _joining(self, group: Group, client: Client, wrong: Sequence[Body] = ()) -> Request:
        random = self._random
        topics = random.choice([TOPICS[:1], TOPICS[:1], TOPICS])
        names = random.choice(_PROTOCOLS)
        protocols = {name: asking.subscription(topics, random.randrange(2)) for name in names}
        session_ms = SHORT_MS if client.is_short else LONG_MS
        body = asking.join_group(group, client, protocols, session_ms)
        return self._request(client, ApiKey.JOIN_GROUP, body, wrong)

    def _sync(self, group: Group) -> list[Request]:
        if not group.members:
            return []
        return [self._sync_of(group, self._random.choice(group.members), _WRONG_SYNCS)]

    def _all_sync(self, group: Group) -> list[Request]:
        return [self._sync_of(group, one) for one in group.members]

    def _sync_of(self, group: Group, client: Client, wrong: Sequence[Body] = ()) -> Request:
        return self._request(client, ApiKey.SYNC_GROUP, asking.sync_group(group, client), wrong)

    # ---------------------------------------------------------------- members
    def _heartbeat(self, group: Group) -> list[Request]:
        if not group.known:
            return []
        client = self._random.choice(group.known)
        body = asking.heartbeat(group, client)
        return [self._request(client, ApiKey.HEARTBEAT, body, _WRONG_MEMBERS)]

    def _leave(self, group: Group) -> list[Request]:
        if not group.known:
            return []
        client = self._random.choice(group.known)
        body = asking.leave_group(group, [client], alone=client)
        return [self._request(client, ApiKey.LEAVE_GROUP, body)]

    def _leave_for_others(self, group: Group) -> list[Request]:
        """An administrator removes members, by their names or ids, or who is none."""
        leavers = []
        for client in self._random.sample(group.clients, self._random.randint(1, 2)):
            by_name = client.instance_id is not None and self._random.random() < 0.7
            member_id = "" if by_name else client.member_id or _NOBODY
            instance_id = client.instance_id if by_name or self._seldom(3) else None
            leavers.append(Client(client.name, instance_id, member_id))
        body = asking.leave_group(group, leavers)
        return [self._request(None, ApiKey.LEAVE_GROUP, body)]

    # ---------------------------------------------------------------- offsets
    def _commit(self, group: Group) -> list[Request]:
        if not group.known:
            return []
        client = self._random.choice(group.known)
        body = asking.offset_commit(group, client, self._offsets())
        return [self._request(client, ApiKey.OFFSET_COMMIT, body, _WRONG_COMMITS)]

    def _commit_from_outside(self, group: Group) -> list[Request]:
        body = asking.offset_commit(group, None, self._offsets())
        return [self._request(None, ApiKey.OFFSET_COMMIT, body)]

    def _commit_in_transaction(self, group: Group) -> list[Request]:
        client = self._random.choice([None, *group.known])
        body = asking.txn_offset_commit(group, client, self._offsets())
        return [self._request(client, ApiKey.TXN_OFFSET_COMMIT, body, _WRONG_MEMBERS[:3])]

    def _end_transaction(self, group: Group) -> list[Request]:
        body = asking.write_txn_markers(group, committed=self._random.random() < 0.6)
        return [self._request(None, ApiKey.WRITE_TXN_MARKERS, body)]

    def _offsets(self) -> list[Offset]:
        random = self._random
        topics = [*TOPICS, "missing"] if self._seldom() else TOPICS
        words = ["x" * 5_000] if self._seldom() else [None, "", "a word"]
        return [
            (topic, *self._partition(), random.choice([-1, 0, 3]), random.choice(words))
            for topic in random.sample(topics, random.randint(1, 2))
        ]

    def _partition(self) -> tuple[int, int]:
        """Return a partition and an offset."""
        most = PARTITIONS + self._seldom()
        return self._random.randrange(most), self._random.randrange(100)

    def _delete_offset(self, group: Group) -> list[Request]:
        topic, partition = self._random.choice(TOPICS), self._random.randrange(PARTITIONS)
        body = asking.offset_delete(group, topic, partition)
        return [self._request(None, ApiKey.OFFSET_DELETE, body)]

    def _fetch(self, group: Group) -> list[Request]:
        partitions = None if self._seldom(3) else self._random.sample(range(PARTITIONS + 1), 2)
        body = asking.offset_fetch(group, partitions, stable=self._seldom(2))
        return [self._request(None, ApiKey.OFFSET_FETCH, body)]

    # ---------------------------------------------------------------- groups
    def _delete_group(self, group: Group) -> list[Request]:
        more = ["missing", ""] if self._seldom(4) else []
        body = {"groups_names": [group.group_id, *more]}
        return [self._request(None, ApiKey.DELETE_GROUPS, body)]

    def _describe(self, group: Group) -> list[Request]:
        body = {"groups": [group.group_id, self._random.choice(["", "missing"])]}
        return [self._request(None, ApiKey.DESCRIBE_GROUPS, body)]

    def _list(self, group: Group) -> list[Request]:
        states = [group.state, self._random.choice(["preparingrebalance", "Odd"])]
        types = self._random.choice([[], ["classic"], ["Consumer"], ["odd"]])
        body = {"states_filter": states, "types_filter": types}
        return [self._request(None, ApiKey.LIST_GROUPS, body)]
