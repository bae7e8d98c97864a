"""A partition's records on their way to become events: what `group_observed` says of each group."""

from __future__ import annotations

import logging

from state.groups.load import NO_EPOCHS, Epochs, LoadedPartition
from state.groups.offset_rows import OffsetRow, loaded_position
from streaming.offsets.batches import ReadBatch, read_batches
from streaming.offsets.records import OffsetRecord, UnreadableRecord, decode_record

logger = logging.getLogger(__name__)


def fold_records(loaded: LoadedPartition, data: bytes, end: int) -> int:
    """Fold whole batches up to an offset and return how many records could not be read.

    A record that cannot be read is passed over, as a broker that loads it would fail for the whole
    partition. Raises UnreadableBatch: of a batch nobody knows how much it says.
    """
    unreadable = 0
    for batch in read_batches(data, end):
        if batch.transactional:
            _note_epochs(loaded, batch)
        if batch.marker is not None:
            loaded.marker(batch.producer_id, committed=batch.marker.committed)
        else:
            unreadable += _fold_batch(loaded, batch)
    return unreadable


def _note_epochs(loaded: LoadedPartition, batch: ReadBatch) -> None:
    known = loaded.epochs.get(batch.producer_id, NO_EPOCHS)
    coordinator = known.coordinator if batch.marker is None else batch.marker.coordinator_epoch
    loaded.epochs.pop(batch.producer_id, None)  # the order is that of who was heard of last
    loaded.epochs[batch.producer_id] = Epochs(batch.producer_epoch, coordinator)


def _fold_batch(loaded: LoadedPartition, batch: ReadBatch) -> int:
    unreadable = 0
    producer = batch.producer_id if batch.transactional else None
    position = loaded_position(batch.base_offset)
    for record in batch.records:
        try:
            read = decode_record(record.key, record.value)
        except UnreadableRecord as error:
            logger.error("a record of __consumer_offsets is passed over: %s", error)
            unreadable += 1
            continue
        if isinstance(read, OffsetRecord):
            row = None if read.value is None else OffsetRow(**read.value, position=position)
            loaded.offset_commit(read.group, (read.topic, read.partition), row, producer)
        elif read is not None:
            loaded.group_metadata(read.group, read.value)
    return unreadable
