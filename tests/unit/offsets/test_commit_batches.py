"""The batch of a commit: how large it may become, and what it takes to make it."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from streaming.offsets.commit_batches import CommitBatch, commit_bytes_at_most

NUMBERS = bytes(12)
TEXT = st.text(max_size=20)


@given(TEXT, st.lists(st.tuples(TEXT, st.integers(0, 300), TEXT), min_size=1, max_size=99))
def test_it_is_no_larger_than_is_said_before_it_is_made(
    group: str, rows: list[tuple[str, int, str]]
) -> None:
    partitions = [(topic, number) for topic, number, _ in rows]
    metadata = [text for *_, text in rows]
    encoded = CommitBatch(group, partitions, metadata).encode([NUMBERS] * len(rows), 1_000)
    spare = commit_bytes_at_most(group, partitions, metadata) - len(encoded)
    assert 0 <= spare <= 32 * len(rows)


def test_it_is_not_copied_for_each_of_its_records() -> None:
    group, partitions = "g" * 3_000, [("t", number) for number in range(300)]
    tracemalloc.start()
    try:
        batch = CommitBatch(group, partitions, [""] * len(partitions))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size_bytes = len(batch.encode([NUMBERS] * len(partitions), 1_000))
    assert most < 1.5 * size_bytes
