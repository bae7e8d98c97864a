"""Batches as a broker writes them: compressed in each way, of an old format, or broken."""

from __future__ import annotations

import struct

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from streaming.offsets.batches import (
    BatchRecord,
    BatchSpan,
    UnreadableBatch,
    encode_batch,
    read_batches,
    spans,
    stamped,
)

HEAD = "00000000000003e8 00000000000003ea ffffffffffffffff ffff ffffffff 00000003"  # times to count
OF_KAFKA = {
    "none": "00000097 ffffffff 02 f6fa62c7 0000 00000002" + HEAD + "42000000086b6579302e"
    "76616c75652076616c75652076616c75652076616c75650042000202086b6579312e76616c75652076616c75652076"
    "616c75652076616c75650042000404086b6579322e76616c75652076616c75652076616c75652076616c756500",
    "gzip": "00000068 ffffffff 02 91f10ffc 0001 00000002" + HEAD + "1f8b08000000000000ff7362"
    "6060e0c84ead34d02b4bcc294d55c020199c189898402a0cf1a8606101a930c2a90200dd7e02f666000000",
    "snappy": "00000071 ffffffff 02 1f1dd947 0002 00000002" + HEAD + "82534e41505059000000"
    "0001000000010000002c663c42000000086b6579302e76616c756520420600100042000202012200316a2200040404"
    "01220032622200",
    "lz4": "00000071 ffffffff 02 41a20c42 0003 00000002" + HEAD + "04224d1860408231000000fd"
    "0142000000086b6579302e76616c756520060050004200020222001f3122000820040422001f322200015061"
    "6c75650000000000",
    "zstd": "00000067 ffffffff 02 8a8f811d 0004 00000002" + HEAD + "28b52ffd0058540100e84200"
    "0000086b6579302e76616c7565200042000202086b657931040432040060050870512192b92c01010000",
}
"""The same three records from offset 40 on, by MemoryRecords.builder of Kafka 3.9.2; without the
base offset.
"""
MESSAGE = bytes.fromhex("00000018 e4e321bc 01 00 00000000000003e8 00000001 6b 00000001 76")
"""A message of magic 1, without its offset."""
ATTRIBUTES_AT = 21
OFFSET = struct.Struct(">q")


@pytest.mark.parametrize("codec", OF_KAFKA)
def test_what_a_broker_compresses_is_read(codec: str) -> None:
    (read,) = read_batches(OFFSET.pack(40) + bytes.fromhex(OF_KAFKA[codec]))
    value = b"value value value value"
    assert read.records == [BatchRecord(1000 + n, b"key%d" % n, value) for n in range(3)]
    assert (read.base_offset, read.last_offset) == (40, 42)


@pytest.mark.parametrize("codec", range(5))
def test_large_batches_are_read_whatever_they_are_compressed_with(codec: int) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, True, 9, 1, 0, 2**31 - 1)
    records = [BatchRecord(7, b"k%d" % n, b"some value " * 100) for n in range(2_000)]
    for n, (time_ms, key, value) in enumerate(records):
        builder.append(n, time_ms, key, value, [])
    (read,) = read_batches(bytes(builder.build()))
    assert read.records == records
    assert (read.producer_id, read.transactional) == (9, True)


@pytest.mark.parametrize(
    ("codec", "name"), list(enumerate(["gzip", "snappy", "lz4", "zstd"], start=1))
)
def test_a_batch_that_cannot_be_unpacked_is_named(codec: int, name: str) -> None:
    broken = bytearray(stamped(encode_batch([BatchRecord(5, b"k", b"v")]), 30, 1))
    struct.pack_into(">h", broken, ATTRIBUTES_AT, codec)
    with pytest.raises(UnreadableBatch, match=f"offset 30, {name}: "):
        list(read_batches(bytes(broken)))


def test_an_unknown_codec_and_records_that_end_early_are_named() -> None:
    batch = bytearray(encode_batch([BatchRecord(5, b"k", b"v")]))
    struct.pack_into(">h", batch, ATTRIBUTES_AT, 7)
    with pytest.raises(UnreadableBatch, match="offset 0, compression 7: "):
        list(read_batches(bytes(batch)))
    struct.pack_into(">h", batch, ATTRIBUTES_AT, 0)
    batch[-5:] = bytes(5)
    with pytest.raises(UnreadableBatch, match="offset 0, none: "):
        list(read_batches(bytes(batch)))


def test_messages_of_an_old_format_stand_where_they_are_and_are_refused_by_name() -> None:
    data = OFFSET.pack(40) + MESSAGE + OFFSET.pack(44) + MESSAGE
    first, second = BatchSpan(0, 36, 40, 40, -1, 1), BatchSpan(36, 72, 44, 44, -1, 1)
    assert list(spans(data)) == [first, second]
    assert list(spans(data[:-1])) == [first]
    with pytest.raises(UnreadableBatch, match=r"offset 40: magic 1, only 2 can be read"):
        list(read_batches(data))


def test_what_is_behind_the_end_is_not_read() -> None:
    good = stamped(encode_batch([BatchRecord(5, b"k", b"v")]), 39, 1)
    assert len(list(read_batches(good + OFFSET.pack(40) + MESSAGE, 40))) == 1


@pytest.mark.parametrize("length", [-13, 0, 48])
def test_a_length_that_no_batch_has_is_refused(length: int) -> None:
    batch = bytearray(encode_batch([BatchRecord(5, b"k", b"v")]))
    struct.pack_into(">i", batch, OFFSET.size, length)
    with pytest.raises(UnreadableBatch, match="at least 61"):
        list(spans(bytes(batch)))
