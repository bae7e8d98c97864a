"""Has live brokers answer requests: any of them, or the one that is meant."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.gateway.passing.pool import BrokerFailed, BrokerPool, PassingLimits, Target
from streaming.gateway.passing.versions import (
    BrokerVersions,
    Range,
    Ranges,
    common_ranges,
    our_range,
)
from streaming.gateway.ports import ImageView
from streaming.image.brokers import RegisteredBroker, endpoint_on
from streaming.security.connector import Connector
from streaming.wire.apis import APIS
from streaming.wire.exchange import CLIENT_ID
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from streaming.wire.schema_codec import Body

_NOBODY: Mapping[int, RegisteredBroker] = {}


class Brokers:
    """The registered brokers as clients of one listener reach them.

    A broker is asked on the listener on which our client came in, so that addresses in its answer
    are good for that client. Lives on the gateway's event loop.
    """

    def __init__(
        self, view: ImageView, node_id: int, limits: PassingLimits, connector: Connector
    ) -> None:
        """Take what is known of the cluster, this node's id, what passing on may take, and what
        connects to brokers.
        """
        self._view = view
        self._node_id = node_id
        self._limits = limits
        self._connector = connector
        self._pools: dict[Target, BrokerPool] = {}
        self._versions = BrokerVersions(self._exchange)
        self._turn = 0
        self._registered = _NOBODY
        self._targets_on: dict[str, dict[int, Target]] = {}

    async def common_versions(self, listener: str) -> Ranges:
        """Return the versions of each API that all brokers of a listener serve."""
        return await self._versions.common(listener, self._targets(listener).values())

    async def pass_on(self, listener: str, request: bytes, broker_id: int | None = None) -> bytes:
        """Return a broker's answer to a request, whose correlation id is not the request's.

        Without a broker id the brokers take turns, and one that cannot be reached is passed over.
        Raises BrokerFailed.
        """
        failure = BrokerFailed(f"no broker to ask on listener {listener}", asked=False)
        for target in self._candidates(listener, broker_id):
            try:
                return await self._exchange(target, request)
            except BrokerFailed as error:
                failure = error
                if error.asked:
                    break
        raise failure

    async def ask(
        self,
        listener: str,
        api_key: int,
        body: Body,
        broker_id: int | None = None,
        *,
        within: Range | None = None,
    ) -> Body:
        """Return a broker's answer, asked in the highest version that all of them and we know.

        within: versions that will do, those we know by default. Raises BrokerFailed, WireError when
        the answer cannot be read.
        """
        ours = {api_key: within or our_range(api_key)}
        ranges = common_ranges([ours, await self.common_versions(listener)])
        if api_key not in ranges:
            api = APIS[api_key].name
            raise BrokerFailed(f"the brokers and we share no version of {api}", asked=False)
        version = ranges[api_key][1]
        request = encode_request(api_key, version, 0, CLIENT_ID, body)
        answer = await self.pass_on(listener, request, broker_id)
        return decode_response(api_key, version, answer)[1]

    async def close(self) -> None:
        """Give up questions under way and close the connections that are not in use."""
        await self._versions.close()
        for pool in self._pools.values():
            pool.close()

    def is_there(self, listener: str, broker_id: int) -> bool:
        """Return whether a broker can be asked on a listener."""
        return broker_id in self._targets(listener)

    def _targets(self, listener: str) -> dict[int, Target]:
        image = self._view.image()
        registered = _NOBODY if image is None else image.brokers
        if registered is not self._registered:
            self._registered = registered
            self._targets_on.clear()
            self._versions.keep([(id_, broker.epoch) for id_, broker in registered.items()])
        if listener not in self._targets_on:
            self._targets_on[listener] = {
                broker_id: Target(broker_id, broker.epoch, end)
                for broker_id, broker in sorted(registered.items())
                if broker_id != self._node_id
                and (end := endpoint_on(broker.node, listener)) is not None
                and self._connector.speaks(end)
            }
        return self._targets_on[listener]

    def _candidates(self, listener: str, broker_id: int | None) -> list[Target]:
        targets = self._targets(listener)
        if broker_id is not None:
            return [targets[broker_id]] if broker_id in targets else []
        self._turn += 1
        first = self._turn % max(len(targets), 1)
        in_order = list(targets.values())
        return in_order[first:] + in_order[:first]

    async def _exchange(self, target: Target, request: bytes) -> bytes:
        if target not in self._pools:
            self._forget_earlier()
            self._pools[target] = BrokerPool(target, self._limits, self._connector)
        return await self._pools[target].exchange(request)

    def _forget_earlier(self) -> None:
        """Close the pools of registrations that are over."""
        image = self._view.image()
        present = {} if image is None else {id_: one.epoch for id_, one in image.brokers.items()}
        for target, pool in list(self._pools.items()):
            if present.get(target.broker_id) != target.epoch:
                pool.close()
                del self._pools[target]
