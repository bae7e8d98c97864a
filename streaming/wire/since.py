"""Versions since which an API says or does something, of those that several modules ask about."""

from __future__ import annotations

CREATE_PARTITIONS_QUOTA, CREATE_TOPICS_QUOTA, DELETE_TOPICS_QUOTA = 3, 6, 5
"""A topic may be refused with THROTTLING_QUOTA_EXCEEDED (KIP-599)."""

DELETE_TOPICS_IDS = 6
"""Topics are named by name or id; before, all of them by name."""

EPOCHS_REPLICA_ID = 3
"""OffsetForLeaderEpoch says which broker follows, if it is one that asks."""

FETCH_TOPIC_IDS = 13
"""Topics are named by id; before, by name."""

FIND_COORDINATOR_MANY_KEYS = 4

JOIN_GROUP_NULL_PROTOCOL = 7
"""An answer may name no protocol; before, "" stands for none."""

JOIN_GROUP_REBALANCE_TIMEOUT = 1
"""Before, the session timeout is the rebalance timeout too."""

METADATA_NO_TOPICS = 1
"""No topic may be asked for; before, an empty list asks for all of them."""

OFFSET_FETCH_MANY_GROUPS = 8

OFFSET_FETCH_TOP_LEVEL_ERROR = 2
"""A group's error is said once; before, of each partition."""

SYNC_GROUP_PROTOCOL = 5
"""Members say what they joined with."""
