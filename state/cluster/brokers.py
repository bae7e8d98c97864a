"""The registered brokers, and which of them may hold leaders."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from state.matrix import Bools, Int32s, among
from state.payloads.brokers import BrokerRegistration, BrokerRegistrationsChanged


class Brokers:
    """Brokers by id, with those that asked for a controlled shutdown, and those that an operator
    lets shut down whatever becomes of their partitions.

    A broker is registered while its znode exists, and live while it is registered and not shutting
    down (Kafka's liveOrShuttingDownBrokerIds and liveBrokerIds).
    """

    __slots__ = (
        "_live",
        "_registered",
        "_shutting_down_ids",
        "by_id",
        "shutdown_allowed",
        "shutting_down",
    )

    def __init__(
        self,
        brokers: Iterable[BrokerRegistration] = (),
        shutting_down: Iterable[int] = (),
        shutdown_allowed: Iterable[int] = (),
    ) -> None:
        """Take the registrations, and the ids that are shutting down and that may."""
        self.by_id = {broker.id: broker for broker in brokers}
        self.shutting_down = set(shutting_down)
        self.shutdown_allowed = set(shutdown_allowed)
        self._refresh()

    def _refresh(self) -> None:
        self._registered = np.array(sorted(self.by_id), dtype=np.int32)
        self._live = np.array(sorted(self.by_id.keys() - self.shutting_down), dtype=np.int32)
        self._shutting_down_ids = np.array(sorted(self.shutting_down), dtype=np.int32)

    @property
    def live_ids(self) -> Int32s:
        """int32[k]: ids of live brokers, ascending."""
        return self._live

    @property
    def racks(self) -> dict[int, str | None]:
        """The racks of registered brokers by ascending id: where new replicas may be placed.

        A broker that is shutting down is among them, as it is in what brokers are told
        (ZkMetadataCache.getAliveBrokers): a topic can be created while brokers restart.
        """
        return {id_: self.by_id[id_].rack for id_ in sorted(self.by_id)}

    def live(self, ids: npt.NDArray[np.int32]) -> Bools:
        """Return a mask shaped like ids: the broker is live; -1 never is."""
        return among(ids, self._live)

    def registered(self, ids: npt.NDArray[np.int32]) -> Bools:
        """Return a mask shaped like ids: the broker is registered; -1 never is."""
        return among(ids, self._registered)

    def is_shutting_down(self, ids: npt.NDArray[np.int32]) -> Bools:
        """Return a mask shaped like ids: the broker is shutting down; -1 never is."""
        return among(ids, self._shutting_down_ids)

    def epoch(self, broker_id: int) -> int | None:
        """Return a registered broker's epoch, None when it is not registered."""
        broker = self.by_id.get(broker_id)
        return None if broker is None else broker.epoch

    def apply(self, changed: BrokerRegistrationsChanged) -> None:
        """Take over who is registered: a broker that bounced is another one."""
        self.unregister((*changed.unregistered, *(broker.id for broker in changed.bounced)))
        self.register((*changed.registered, *changed.bounced, *changed.updated))

    def register(self, brokers: Iterable[BrokerRegistration]) -> None:
        """Add brokers or replace their registrations."""
        self.by_id.update((broker.id, broker) for broker in brokers)
        self._refresh()

    def unregister(self, ids: Iterable[int]) -> None:
        """Remove brokers; they are no longer shutting down, nor allowed to."""
        for broker_id in ids:
            self.by_id.pop(broker_id, None)
            self.shutting_down.discard(broker_id)
            self.shutdown_allowed.discard(broker_id)
        self._refresh()

    def may_shut_down(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether a shutdown request is from a registered broker's present epoch, or states
        none (-1).
        """
        epoch = self.epoch(broker_id)
        return epoch is not None and (broker_epoch == -1 or broker_epoch >= epoch)

    def allow_shutdown(self, broker_id: int) -> None:
        """Let a broker shut down whatever becomes of its partitions, until it is gone."""
        if broker_id in self.by_id:
            self.shutdown_allowed.add(broker_id)

    def start_shutdown(self, broker_id: int) -> None:
        """Mark a registered broker as shutting down."""
        assert broker_id in self.by_id, f"broker {broker_id} is not registered"
        self.shutting_down.add(broker_id)
        self._refresh()
