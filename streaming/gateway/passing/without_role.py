"""Passes requests about the cluster to the active controller while that is not this node.

Clients that know this node go on asking it: some read only the controller's id from its answer and
ask again, here, until the answer names one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from streaming.gateway.calls import Call, Handler
from streaming.gateway.coordinators import topic_of
from streaming.gateway.passing.brokers import Brokers
from streaming.gateway.passing.pool import BrokerFailed
from streaming.gateway.ports import ClusterView
from streaming.wire.apis import ApiKey
from streaming.wire.errors import WireError
from streaming.wire.responses import response_body
from streaming.wire.schema_codec import Body

_NO_TOPICS: Body = {"topics": [], "allow_auto_topic_creation": False}


class WithoutRole:
    """Passes requests about the cluster on to the controller while that is not this node."""

    def __init__(self, view: ClusterView, brokers: Brokers) -> None:
        """Take the view, which says who has the role, and the brokers, which answer without it."""
        self._view = view
        self._brokers = brokers

    def around(self, handler: Handler) -> Handler:
        """Return the handler of an API that this node answers itself while it has the role.

        It also answers while no broker does or none knows of another controller: with the nodes it
        knew last, itself among them, and no controller.
        """
        return self._around(handler, self._ask_controller)

    def around_coordinators(self, handler: Handler, announced_topic: str | None) -> Handler:
        """Return the handler of FindCoordinator: any broker knows who leads the partitions of an
        internal topic, but for the announced one, which this node is to lead.
        """
        passing = self._around(handler, self._ask_any)

        async def handle(call: Call) -> Body | bytes:
            ours = announced_topic is not None and topic_of(call) == announced_topic
            return await (handler if ours else passing)(call)

        return handle

    def _around(self, handler: Handler, ask: Callable[[Call], Awaitable[bytes]]) -> Handler:
        async def handle(call: Call) -> Body | bytes:
            if self._view.is_current():
                return await handler(call)
            try:
                return response_body(call.header.api_key, call.version, await ask(call))
            except (BrokerFailed, WireError):
                return await handler(call)

        return handle

    async def _ask_any(self, call: Call) -> bytes:
        return await self._brokers.pass_on(call.listener.name, call.frame)

    async def _ask_controller(self, call: Call) -> bytes:
        """Raises BrokerFailed, also when brokers still name this node.

        With the role there is nobody to look for, and any broker knows more than this node.
        """
        if self._view.is_controller():
            return await self._ask_any(call)
        listener = call.listener.name
        metadata = await self._brokers.ask(listener, ApiKey.METADATA, _NO_TOPICS)
        return await self._brokers.pass_on(listener, call.frame, metadata["controller_id"])
