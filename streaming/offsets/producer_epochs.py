"""The newest epochs of the transactional producers of one partition: who comes late is turned away.

Source: Kafka's ProducerStateManager, ProducerAppendInfo.checkProducerEpoch, checkCoordinatorEpoch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from state.groups.load import NO_EPOCHS, Epochs
from state.protocol_errors import ProtocolError

_KEPT = 10_000
"""As many producers a partition are known, those that were heard of last: Kafka knows them for a
day (producer.id.expiration.ms), and Kafka Streams takes new ones at each start.
"""


class ProducerEpochs:
    """By producer id, the one that was heard of last at the end; they are known once the partition
    is loaded.
    """

    def __init__(self) -> None:
        """Begin before the partition is loaded."""
        self._of: dict[int, Epochs] = {}
        self._loaded = asyncio.Event()

    def load(self, found: Mapping[int, Epochs]) -> None:
        """Take what stands in the partition; nothing of a transaction was appended before."""
        for producer_id, epochs in found.items():
            self.ended(producer_id, epochs)
        self._loaded.set()

    async def loaded(self, timeout_s: float) -> bool:
        """Wait until the partition is loaded; False when that takes too long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._loaded.wait()
        except TimeoutError:
            return False
        return True

    def commit_error(self, producer_id: int, epoch: int) -> int:
        """Return INVALID_PRODUCER_EPOCH for a producer that another took the place of, else 0."""
        known = self._of.get(producer_id, NO_EPOCHS)
        late = epoch < known.producer
        return ProtocolError.INVALID_PRODUCER_EPOCH if late else ProtocolError.NONE

    def marker_error(self, producer_id: int, epochs: Epochs) -> int:
        """Return the same for a marker, or TRANSACTION_COORDINATOR_FENCED for one of a coordinator
        that another took the place of.
        """
        if error := self.commit_error(producer_id, epochs.producer):
            return error
        late = epochs.coordinator < self._of.get(producer_id, NO_EPOCHS).coordinator
        return ProtocolError.TRANSACTION_COORDINATOR_FENCED if late else ProtocolError.NONE

    def committed(self, producer_id: int, epoch: int) -> None:
        """Note offsets that were appended as a part of a transaction."""
        known = self._of.get(producer_id, NO_EPOCHS)
        self.ended(producer_id, known._replace(producer=epoch))

    def ended(self, producer_id: int, epochs: Epochs) -> None:
        """Note a marker that was appended."""
        self._of.pop(producer_id, None)
        self._of[producer_id] = epochs
        if len(self._of) > _KEPT:
            del self._of[next(iter(self._of))]
