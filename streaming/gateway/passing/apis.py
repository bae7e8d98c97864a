"""The APIs that any broker answers, and that this node passes on without reading them.

Clients send these to whichever node they like; brokers answer them out of ZooKeeper, whoever the
controller is. To a broker it is this node that asks: so requests about delegation tokens, which
would be tokens of ours, are not among them, but answered here.
"""

from __future__ import annotations

from collections.abc import Mapping

from streaming.gateway.calls import BoundListener, HangUp
from streaming.gateway.passing.brokers import Brokers
from streaming.gateway.passing.pool import BrokerFailed
from streaming.gateway.passing.versions import Range
from streaming.wire.apis import APIS, PASSED_APIS, ApiKey
from streaming.wire.passing import RequestPrefix, answer_with_id

PASSED_VERSIONS: Mapping[int, Range] = {key: (0, APIS[key].max_version) for key in PASSED_APIS}
"""What brokers answer: of those about ACLs also version 0, which this package cannot read."""

OFFSETS_IN_ZOOKEEPER: Mapping[int, int] = {ApiKey.OFFSET_COMMIT: 0, ApiKey.OFFSET_FETCH: 0}
"""The version of these APIs that any broker answers out of ZooKeeper, whoever coordinates the
group (KafkaApis.handleOffsetCommitRequest, handleOffsetFetchRequest).
"""


class Passing:
    """Passes whole requests on to a broker and its answers back."""

    def __init__(self, brokers: Brokers) -> None:
        """Take who answers."""
        self._brokers = brokers

    async def handle(self, listener: BoundListener, prefix: RequestPrefix, request: bytes) -> bytes:
        """Return a broker's answer, its header included, under the request's correlation id.

        Raises HangUp when there is none: only a closed connection says so in every API.
        """
        try:
            answer = await self._brokers.pass_on(listener.name, request)
        except BrokerFailed as error:
            raise HangUp(str(error)) from error
        return answer_with_id(answer, prefix.correlation_id)
