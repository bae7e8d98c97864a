"""InitProducerId for idempotent producers, out of blocks of ids that are reserved ahead."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from state.event_kinds import EventKind
from state.protocol_errors import ProtocolError, error_text
from streaming.gateway.calls import Call
from streaming.gateway.ports import DecisionClient, DecisionTimedOut, NotController
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

_NO_EPOCH = -1
_NO_ID = -1
_REFILL_SHARE = 0.1


class NoProducerIds(Exception):
    """No id is left and no block could be had; asking again later may help."""


class ProducerIds:
    """Hands out producer ids that no other node hands out.

    Blocks are reserved by producer_ids_requested events; the next one is asked for when a tenth of
    the present one is left (as RPCProducerIdManager does), by one request at a time. Ids of a block
    stay ours when the controller role is lost; those left over at the end are never used.
    """

    def __init__(self, decision_client: DecisionClient, node_id: int, timeout_s: float) -> None:
        """Take who decides, the id this node asks under, and how long to wait for a block."""
        self._decision_client = decision_client
        self._node_id = node_id
        self._timeout_s = timeout_s
        self._ids: deque[int] = deque()
        self._refill_at = 0
        self._refill: asyncio.Task[None] | None = None

    async def next_id(self) -> int:
        """Return a fresh id; raises NoProducerIds."""
        while not self._ids:
            # The refill is shared: a caller that gives up must not take it from the others.
            await asyncio.shield(self._refilling())
        producer_id = self._ids.popleft()
        if len(self._ids) <= self._refill_at:
            self._refilling()
        return producer_id

    async def close(self) -> None:
        """Cancel a refill that is under way."""
        if self._refill is not None:
            self._refill.cancel()
            await asyncio.gather(self._refill, return_exceptions=True)

    def _refilling(self) -> asyncio.Task[None]:
        """Return the refill that is under way, after starting one if there is none."""
        if self._refill is None or self._refill.done():
            self._refill = asyncio.create_task(self._fetch_block())
            self._refill.add_done_callback(_report)
        return self._refill

    async def _fetch_block(self) -> None:
        payload = {"broker_id": self._node_id, "broker_epoch": _NO_EPOCH}
        try:
            reply = await self._decision_client.submit(
                EventKind.PRODUCER_IDS_REQUESTED, "", payload, self._timeout_s
            )
        except (DecisionTimedOut, NotController) as error:
            raise NoProducerIds(f"no block of producer ids: {error!r}") from error
        if reply["error"] != ProtocolError.NONE:
            raise NoProducerIds(f"no block of producer ids: error {error_text(reply['error'])}")
        start, length = reply["producer_id_start"], reply["producer_id_len"]
        self._ids.extend(range(start, start + length))
        self._refill_at = int(length * _REFILL_SHARE)


def _report(refill: asyncio.Task[None]) -> None:
    if not refill.cancelled() and (error := refill.exception()) is not None:
        logger.warning("producer ids were not refilled: %s", error)


class InitProducerId:
    """Answers InitProducerId (KafkaApis.handleInitProducerId).

    A transactional id gets NOT_COORDINATOR, on which clients ask FindCoordinator. Without one, any
    id and epoch the producer had are ignored, as on a broker, and it starts anew with epoch 0.
    """

    def __init__(self, producer_ids: ProducerIds) -> None:
        """Take where ids come from."""
        self._producer_ids = producer_ids

    async def handle(self, call: Call) -> Body:
        """Answer with a fresh id, or with an error that clients retry."""
        if (error := _request_error(call.body)) != ProtocolError.NONE:
            return _answer(error)
        try:
            return _answer(ProtocolError.NONE, await self._producer_ids.next_id())
        except NoProducerIds:
            return _answer(ProtocolError.COORDINATOR_LOAD_IN_PROGRESS)


def _request_error(body: Body) -> int:
    if (body["producer_id"] == _NO_ID) != (body["producer_epoch"] == _NO_EPOCH):
        return ProtocolError.INVALID_REQUEST
    if body["transactional_id"] is None:
        return ProtocolError.NONE
    if body["transactional_id"] == "":
        return ProtocolError.INVALID_REQUEST
    return ProtocolError.NOT_COORDINATOR


def _answer(error: int, producer_id: int = _NO_ID) -> Body:
    epoch = 0 if error == ProtocolError.NONE else _NO_EPOCH
    return {"error_code": error, "producer_id": producer_id, "producer_epoch": epoch}
