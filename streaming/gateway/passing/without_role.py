"""Has a broker tell who controls the cluster while this node does not.

Clients that know this node go on asking it: some read only the controller's id from its answer and
ask again, here, until they are told one.
"""

from __future__ import annotations

from streaming.gateway.calls import Call, Handler
from streaming.gateway.passing.brokers import Brokers
from streaming.gateway.passing.pool import BrokerFailed
from streaming.gateway.ports import ClusterView
from streaming.wire.errors import WireError
from streaming.wire.messages import response_body
from streaming.wire.schema_codec import Body


class WithoutRole:
    """Passes requests about the cluster on to a broker while this node has not the role."""

    def __init__(self, view: ClusterView, brokers: Brokers) -> None:
        """Take who tells about the role, and who answers without it."""
        self._view = view
        self._brokers = brokers

    def around(self, handler: Handler) -> Handler:
        """Return the handler of an API that this node answers itself while it has the role.

        It also answers when no broker does: with the nodes it knew last, and no controller.
        """

        async def handle(call: Call) -> Body | bytes:
            if self._view.is_controller():
                return await handler(call)
            try:
                answer = await self._brokers.pass_on(call.listener.name, call.frame)
                return response_body(call.header.api_key, call.version, answer)
            except (BrokerFailed, WireError):
                return await handler(call)

        return handle
