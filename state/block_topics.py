"""The topics of column blocks: numbers that several blocks have in common, and keys of partitions.

A block has a list of topics (`topics`, with `topic_ids` beside it) and a column of indexes into it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from state.blocks import Column
from state.matrix import Int32s


def common_topics(
    blocks: Sequence[tuple[Sequence[str], Sequence[str | None]]],
) -> tuple[list[str], list[str | None], list[Int32s]]:
    """Return the topics of all blocks, ascending, their ids, and for each block int32[k]: which of
    them its topics are.

    blocks: topics and topic ids of each; of several ids of a topic the last block's stays.
    """
    ids: dict[str, str | None] = {}
    for topics, topic_ids in blocks:
        ids.update(zip(topics, topic_ids, strict=True))
    names = sorted(ids)
    place = {name: index for index, name in enumerate(names)}
    places = [np.array([place[name] for name in topics], dtype=np.int32) for topics, _ in blocks]
    return names, [ids[name] for name in names], places


def partition_keys(columns: Mapping[str, Column]) -> Column:
    """Return int64[n] that tells a block's partitions apart, and sorts them by topic and number."""
    keys: Column = columns["topic"].astype(np.int64) << 32 | columns["partition"]
    return keys
