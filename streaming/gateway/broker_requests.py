"""What brokers ask of their controller: controlled shutdown and blocks of producer ids."""

from __future__ import annotations

from state.event_kinds import EventKind
from streaming.gateway.calls import Call
from streaming.gateway.cluster_requests import ClusterRequests
from streaming.wire.schema_codec import Body


class ControlledShutdown:
    """Answers ControlledShutdown with the partitions that the broker still leads."""

    def __init__(self, requests: ClusterRequests) -> None:
        """Take what has requests decided."""
        self._requests = requests

    async def handle(self, call: Call) -> Body:
        """Answer once the leaders were moved; versions 0 and 1 carry no broker epoch (-1)."""
        payload = {
            "broker_id": call.body["broker_id"],
            "broker_epoch": call.body["broker_epoch"],
            "version": call.version,
        }
        kind = EventKind.CONTROLLED_SHUTDOWN_REQUESTED
        reply = await self._requests.reply(kind, "", payload)
        remaining = [
            {"topic_name": topic, "partition_index": partition}
            for topic, partition in reply.get("remaining", ())
        ]
        return {"error_code": reply["error"], "remaining_partitions": remaining}


class AllocateProducerIds:
    """Answers AllocateProducerIds with a block of ids of the broker's own."""

    def __init__(self, requests: ClusterRequests) -> None:
        """Take what has requests decided."""
        self._requests = requests

    async def handle(self, call: Call) -> Body:
        """Answer once the block is reserved in ZooKeeper."""
        payload = {
            "broker_id": call.body["broker_id"],
            "broker_epoch": call.body["broker_epoch"],
        }
        reply = await self._requests.reply(EventKind.PRODUCER_IDS_REQUESTED, "", payload)
        return {
            "error_code": reply["error"],
            "producer_id_start": reply.get("producer_id_start", 0),
            "producer_id_len": reply.get("producer_id_len", 0),
        }
