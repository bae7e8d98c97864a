"""What the gateway needs from the process around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from state.event_kinds import EventKind
from streaming.image.cluster_image import ClusterImage
from streaming.security.delegation_tokens import DelegationToken

ReplyBody: TypeAlias = dict[str, Any]
"""What was decided about a request."""

COMMIT_TIMEOUT_S = 5.0
"""Kafka's default of offsets.commit.timeout.ms. Heartbeats of the same connection wait behind a
commit, and a client that hears of none for a session timeout gives its membership up.
"""


class DecisionTimedOut(Exception):
    """The event was appended, but no reply came in time; it may still be decided."""


class NotReplicated(Exception):
    """Nothing was appended: what it has to follow is not on all brokers in sync yet."""


class NotController(Exception):
    """This node is not the controller now, or ceased to be while a reply was awaited."""


class NoJob(Exception):
    """There is no job that would decide it, or it went away while a reply was awaited."""


class Paused(NotController):
    """An operator has paused decisions of this kind; the message says so."""


class DecisionClient(Protocol):
    """Has requests decided by the query."""

    async def submit(
        self, kind: EventKind, key: str, payload: dict[str, Any], timeout_s: float
    ) -> ReplyBody:
        """Append an event with a fresh request_id in its payload and return the reply's body.

        key is a topic name or "". The event is appended even when timeout_s is 0. Raises
        DecisionTimedOut, NotController, Paused; cancelling it must leave nothing behind.
        """
        ...


class UserConfigs(Protocol):
    """Where configurations of users are kept."""

    async def alter(self, user: str, changes: Mapping[str, str | None]) -> bool:
        """Set configs of a user, or remove those that are None; False, and nothing is changed, when
        one to be removed is not there.

        Raises OSError when it cannot be done.
        """
        ...


class StoredTokens(Protocol):
    """Where delegation tokens are kept."""

    async def all(self) -> Sequence[DelegationToken]:
        """Return those that can be read; raises OSError when none can."""
        ...

    async def create(self, token: DelegationToken) -> None:
        """Keep a new token, and have brokers read it. Raises OSError when it cannot be done."""
        ...

    async def alter(
        self, token_id: str, alter: Callable[[DelegationToken], DelegationToken | None]
    ) -> DelegationToken | None:
        """Replace a token by what is made of it as it is now, or remove it (None), and have brokers
        read it; return the token as it was, None when there is none.

        What `alter` raises is raised. Raises OSError when it cannot be done.
        """
        ...


class ImageView(Protocol):
    """The cluster as decided so far."""

    def image(self) -> ClusterImage | None:
        """Return it, None before the job sent the first image."""
        ...


class PartitionsView(ImageView, Protocol):
    """The cluster as decided so far, and how many partitions its topics were given."""

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, those without a state too, which the image has
        not; 0 when it is not known.
        """
        ...


class ClusterView(PartitionsView, Protocol):
    """What this node knows of the cluster; read on the gateway's event loop, but for names that are
    looked up to judge long requests.

    The image must not change between two awaits of the gateway, so it is folded on the same loop.
    """

    @property
    def cluster_id(self) -> str:
        """The cluster's id, from `/cluster/id`."""
        ...

    def deprioritized(self) -> Sequence[int]:
        """Return the brokers that lead where nobody else can (leader.deprioritized.list)."""
        ...

    def is_controller(self) -> bool:
        """Return whether this node holds the controller role now."""
        ...

    def is_current(self) -> bool:
        """Return whether this node holds the role, and nobody else did since what the image says.

        Brokers' caches follow every controller (KafkaApis.handleUpdateMetadataRequest); the image
        only this node's terms. What it says is good for clients while this holds.
        """
        ...
