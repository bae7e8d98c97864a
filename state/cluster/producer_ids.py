"""Blocks of producer ids: each is handed out once."""

from __future__ import annotations

from state.bodies import WriteProducerIdBlock
from state.cluster.cluster import Cluster
from state.decisions import Decision, DecisionKind, json_decision
from state.events import Event
from state.payloads.brokers import ProducerIdBlockObserved, ProducerIdsRequested
from state.protocol_errors import ProtocolError
from state.replies import reply
from state.reply_bodies import ControllerApi, ProducerIdsReply

PRODUCER_ID_BLOCK_SIZE = 1000


def on_producer_ids_requested(
    cluster: Cluster, event: Event, request: ProducerIdsRequested
) -> list[Decision]:
    """Hand out the next block of producer ids (ZkProducerIdManager,
    KafkaController.processAllocateProducerIds).
    """
    error = _producer_ids_error(cluster, request)
    if error is not None:
        return [reply(event, _answer(request, error))]
    start = cluster.producer_id_end + 1
    write: WriteProducerIdBlock = {
        "broker": request.broker_id,
        "block_start": start,
        "block_end": start + PRODUCER_ID_BLOCK_SIZE - 1,
        "expected_version": cluster.producer_id_version,
        **cluster.authority.fence(),
    }
    cluster.producer_id_end = start + PRODUCER_ID_BLOCK_SIZE - 1
    cluster.producer_id_version += 1
    answer = _answer(request, ProtocolError.NONE)
    answer["producer_id_start"], answer["producer_id_len"] = start, PRODUCER_ID_BLOCK_SIZE
    return [
        json_decision(event.offset, DecisionKind.WRITE_PRODUCER_ID_BLOCK, write),
        reply(event, answer),
    ]


def _answer(request: ProducerIdsRequested, error: ProtocolError) -> ProducerIdsReply:
    return {"request_id": request.request_id, "api": ControllerApi.PRODUCER_IDS, "error": error}


def _producer_ids_error(cluster: Cluster, request: ProducerIdsRequested) -> ProtocolError | None:
    if not cluster.authority.is_loaded:
        return ProtocolError.NOT_CONTROLLER
    if request.broker_id == cluster.authority.controller_id:
        return None
    epoch = cluster.brokers.epoch(request.broker_id)
    if epoch is None:
        return ProtocolError.BROKER_ID_NOT_REGISTERED
    return None if epoch == request.broker_epoch else ProtocolError.STALE_BROKER_EPOCH


def on_producer_id_block_observed(
    cluster: Cluster, event: Event, observed: ProducerIdBlockObserved
) -> list[Decision]:
    """Take over the last block that ZooKeeper has."""
    # Never back: a block that was promised and not written is skipped, not promised again.
    cluster.producer_id_end = max(cluster.producer_id_end, observed.block_end)
    cluster.producer_id_version = observed.zk_version
    return []
