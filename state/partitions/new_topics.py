"""Topics that nothing was known of, as brokers and tools create them: many at a time.

A rule that looks at a row looks at nothing but that row, the brokers and the settings. So new rows
can be folded in a table of their own, those of many events at once, and each event still decides
what it would have decided alone. What is not this simple goes the general way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from state.decisions import Decision
from state.events import Event
from state.matrix import NONE, stack_padded, widen
from state.partitions.changes import Changes
from state.partitions.rows import new_columns
from state.partitions.slot import Slot
from state.partitions.starting import create_partitions
from state.partitions.table import PartitionTable, Topic
from state.payloads.topics import TopicObserved
from state.topic_ids import NO_TOPIC_ID

Observations = Sequence[tuple[Event, TopicObserved]]


def is_new(slot: Slot, observed: TopicObserved) -> bool:
    """Return whether an observed topic can be created by `create_observed`: nothing is known or
    stored of it, and its znode is as it is to be.
    """
    name = observed.topic
    return (
        slot.table.topic_index(name) is None
        and name not in slot.table.deletions
        and name not in slot.table.deleted
        and name not in slot.table.awaited
        and (observed.topic_id != NO_TOPIC_ID or observed.new_topic_id == NO_TOPIC_ID)
        and not observed.states.present.any()
        and not (observed.adding != NONE).any()
        and not (observed.removing != NONE).any()
        and not (observed.replicas == slot.authority.controller_id).any()
    )


def create_observed(slot: Slot, observations: Observations) -> list[Decision]:
    """Create topics of different names that are new (`is_new`), and return what the events
    decide.
    """
    alone = Slot(slot.authority, slot.config, slot.brokers, _table(slot, observations))
    rows = alone.table.rows
    changes = Changes.about_topics(
        alone.table, {one.topic: event.offset for event, one in observations}
    )
    create_partitions(alone, changes, np.arange(len(rows)))
    found = changes.finish(slot.authority, slot.brokers)
    first = len(slot.table.topics)
    for topic in alone.table.topics:
        slot.table.add_topic(topic)
    rows.topic += np.int32(first)
    slot.table.add_rows(rows)
    return found


def _table(slot: Slot, observations: Observations) -> PartitionTable:
    """Return a table of the observed topics, their rows in the order in which they are listed, as
    wide as the slot's.
    """
    topics = [
        Topic(one.topic, one.topic_id, one.unclean, one.zk_version, one.min_insync)
        for _, one in observations
    ]
    counts = [len(one.partitions) for _, one in observations]
    replicas = stack_padded([one.replicas for _, one in observations], NONE)
    return PartitionTable(
        topics,
        new_columns(
            np.repeat(np.arange(len(topics), dtype=np.int32), counts),
            np.concatenate([one.partitions for _, one in observations]),
            widen(replicas, slot.table.rows.replicas.shape[1]),
        ),
    )
