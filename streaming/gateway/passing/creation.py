"""Has brokers create topics that clients use before anybody created them.

A broker creates a topic that a client asks Metadata about, if auto.create.topics.enable lets it,
and __consumer_offsets and __transaction_state when somebody looks for their coordinators. Only
brokers know these settings, and how many partitions and replicas such a topic gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from state.protocol_errors import ProtocolError
from streaming.gateway.passing.brokers import Brokers
from streaming.gateway.passing.pool import BrokerFailed
from streaming.wire.apis import ApiKey
from streaming.wire.errors import WireError


class AutoCreation:
    """Asks a broker what the client asked us: it creates the topic if its settings say so."""

    def __init__(self, brokers: Brokers) -> None:
        """Take the brokers, which create topics."""
        self._brokers = brokers

    async def of_topics(self, listener: str, topics: Sequence[str]) -> dict[str, int]:
        """Return what a broker says of topics that are not there yet: an error code by name.

        A topic that its answer lacks, and all of them when no broker answers, are left out.
        """
        body = {
            "topics": [{"name": name} for name in topics],
            "allow_auto_topic_creation": True,
        }
        try:
            answer = await self._brokers.ask(listener, ApiKey.METADATA, body)
        except (BrokerFailed, WireError):
            return {}
        # A topic that it knows already reaches our image in a moment.
        return {
            topic["name"]: topic["error_code"] or ProtocolError.LEADER_NOT_AVAILABLE
            for topic in answer["topics"]
        }

    async def of_coordinators(self, listener: str, key_type: int, key: str) -> None:
        """Have the topic of a kind of coordinators created."""
        body = {"key": key, "key_type": key_type, "coordinator_keys": [key]}
        with suppress(BrokerFailed, WireError):  # the client asks again
            await self._brokers.ask(listener, ApiKey.FIND_COORDINATOR, body)
