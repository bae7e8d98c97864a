"""AlterPartition requests as a whole: who may ask, and how they are answered."""

from __future__ import annotations

from state.cluster.authority import Authority
from state.cluster.brokers import Brokers
from state.cluster.cluster import Cluster
from state.decisions import Decision
from state.events import Event
from state.payloads.partitions import AlterPartitionRequested
from state.protocol_errors import ProtocolError
from state.replies import reply
from state.reply_bodies import AlterPartitionReply, ControllerApi, IsrAnswer


def alter_partition_sender_error(
    authority: Authority, brokers: Brokers, request: AlterPartitionRequested
) -> ProtocolError | None:
    """Return why a request counts for nothing, None if it counts: we do not control, or its sender
    is another incarnation of the broker than the registered one.
    """
    if not authority.is_active:
        return ProtocolError.NOT_CONTROLLER
    if brokers.epoch(request.broker_id) != request.broker_epoch:
        return ProtocolError.STALE_BROKER_EPOCH
    return None


def alter_partition_reply(
    event: Event,
    request: AlterPartitionRequested,
    error: ProtocolError,
    partitions: list[IsrAnswer],
) -> Decision:
    """Return the reply to a request with its answers per partition."""
    body: AlterPartitionReply = {
        "request_id": request.request_id,
        "api": ControllerApi.ALTER_PARTITION,
        "error": error,
        "topic": request.topic,
        "topic_id": request.topic_id,
        "partitions": partitions,
    }
    return reply(event, body)


def on_alter_partition_requested(
    cluster: Cluster, event: Event, request: AlterPartitionRequested
) -> list[Decision]:
    """Answer for a topic id that nobody knows; for others the topic's slot answers."""
    error = alter_partition_sender_error(cluster.authority, cluster.brokers, request)
    partitions: list[IsrAnswer] = [
        {"partition": partition, "error": ProtocolError.UNKNOWN_TOPIC_ID}
        for partition in request.partitions.tolist()
    ]
    return [alter_partition_reply(event, request, error or ProtocolError.NONE, partitions)]
