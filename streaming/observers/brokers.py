"""Watches the brokers' registrations: who came, went, came back or changed what
it says of itself: endpoints, rack, features.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from state.event_kinds import EventKind
from state.json_values import int32
from streaming.log.events import EventAppender, event
from streaming.observers.tree import WatchedTree
from streaming.process.counters import Counters
from streaming.wire.endpoints import Endpoint, endpoint_json
from streaming.zk.types import ZNode
from streaming.zk.znodes import BROKER_IDS_PATH, broker_path, parse_broker

logger = logging.getLogger(__name__)

_ID = re.compile("[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker's znode; its czxid is the epoch."""

    id: int
    epoch: int
    rack: str | None
    endpoints: Sequence[Endpoint]
    features: Mapping[str, Mapping[str, int]]

    def body(self) -> dict[str, Any]:
        """Return the registration as events carry it."""
        return {
            "id": self.id,
            "epoch": self.epoch,
            "rack": self.rack,
            "endpoints": [endpoint_json(end) for end in self.endpoints],
            "features": {name: dict(levels) for name, levels in self.features.items()},
        }


@dataclass(frozen=True, slots=True)
class _Look:
    """Registrations found in one look; broken: ids whose znode cannot be read, with its czxid."""

    registrations: dict[int, Registration]
    broken: dict[int, int]


class BrokersObserver:
    """Appends the difference between /brokers/ids and what it appended last.

    A broker is the same as before while its znode's czxid is (KafkaController.processBrokerChange):
    one that was replaced between two looks has bounced, with or without a change of the children.
    What is found in one look is one event. Our own registration is not a broker's.
    """

    def __init__(
        self, tree: WatchedTree, log: EventAppender, controller_id: int, counters: Counters
    ) -> None:
        """Start with no broker known."""
        self._tree = tree
        self._log = log
        self._controller_id = controller_id
        self._counters = counters
        self._known: dict[int, Registration] = {}
        self._complained: dict[int, int] = {}  # mzxid of a broken znode by broker

    @property
    def ids(self) -> list[int]:
        """Ids of the brokers appended as registered, ascending."""
        return sorted(self._known)

    @property
    def racks(self) -> dict[int, str | None]:
        """The racks of the brokers appended as registered, by id."""
        return {id_: one.rack for id_, one in self._known.items()}

    @property
    def registrations(self) -> list[Registration]:
        """The registrations of the brokers appended as registered, by ascending id."""
        return [self._known[id_] for id_ in self.ids]

    def look(self) -> None:
        """Read all registrations again and append what differs, as one event."""
        found = self._read()
        change = self._difference(found)
        if any(change.values()):
            self._log.append([event(EventKind.BROKER_REGISTRATIONS_CHANGED, change)])
        self._known = self._now_known(found)

    def _read(self) -> _Look:
        look = _Look({}, {})
        for broker_id, znode in read_brokers(self._tree, self._controller_id).items():
            self._take(look, broker_id, znode)
        return look

    def _take(self, look: _Look, broker_id: int, znode: ZNode) -> None:
        try:
            look.registrations[broker_id] = registration(broker_id, znode)
        except ValueError as error:
            look.broken[broker_id] = znode.czxid
            if self._complained.get(broker_id) != znode.mzxid:
                self._complained[broker_id] = znode.mzxid
                self._counters["broken_broker_znodes"] += 1
                logger.warning("registration of broker %d is passed over: %s", broker_id, error)

    def _now_known(self, found: _Look) -> dict[int, Registration]:
        """Return what stands after a look: an unreadable update leaves a broker as it was."""
        kept = {id_: self._known[id_] for id_ in self._unreadable_updates(found)}
        return found.registrations | kept

    def _unreadable_updates(self, found: _Look) -> set[int]:
        return {
            id_
            for id_, czxid in found.broken.items()
            if id_ in self._known and self._known[id_].epoch == czxid
        }

    def _difference(self, found: _Look) -> dict[str, list[Any]]:
        before, now = self._known, found.registrations
        both = sorted(before.keys() & now.keys())
        bounced = [id_ for id_ in both if now[id_].epoch != before[id_].epoch]
        updated = [id_ for id_ in both if id_ not in bounced and now[id_] != before[id_]]
        gone = before.keys() - now.keys() - self._unreadable_updates(found)
        return {
            "registered": [now[id_].body() for id_ in sorted(now.keys() - before.keys())],
            "unregistered": sorted(gone),
            "bounced": [now[id_].body() for id_ in bounced],
            "updated": [now[id_].body() for id_ in updated],
        }


def read_brokers(tree: WatchedTree, controller_id: int) -> dict[int, ZNode]:
    """Read all registrations but our own, leaving watches on the folder and on each."""
    names = [name for name in tree.children(BROKER_IDS_PATH) if _ID.fullmatch(name)]
    ids = [int(name) for name in names if int(name) != controller_id]
    znodes = tree.get_many([broker_path(id_) for id_ in ids])
    # None: gone since the children were listed, their watch will tell.
    return {id_: znode for id_, znode in zip(ids, znodes, strict=True) if znode is not None}


def readable_registrations(tree: WatchedTree, controller_id: int) -> list[Registration]:
    """Return all registrations that can be read, by ascending id; leaves watches as
    `read_brokers`.
    """
    found = []
    for broker_id, znode in sorted(read_brokers(tree, controller_id).items()):
        with contextlib.suppress(ValueError):
            found.append(registration(broker_id, znode))
    return found


def registration(broker_id: int, znode: ZNode) -> Registration:
    """Return what a broker's znode says; raises ValueError."""
    broker = parse_broker(znode.data)
    return Registration(
        int32(broker_id), znode.czxid, broker.rack, broker.endpoints, broker.features
    )
