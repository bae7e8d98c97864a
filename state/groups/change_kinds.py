"""The kinds of changes to a group."""

from __future__ import annotations

from enum import StrEnum


class ChangeKind(StrEnum):
    """What may change in a group, by the names that change_group gives."""

    GROUP_CREATED = "group_created"
    GROUP_LOADED = "group_loaded"
    GROUP_REMOVED = "group_removed"
    GROUP_EMPTIED = "group_emptied"
    MEMBER_ADDED = "member_added"
    MEMBER_UPDATED = "member_updated"
    MEMBER_REPLACED = "member_replaced"
    MEMBER_REMOVED = "member_removed"
    REBALANCE_STARTED = "rebalance_started"
    GENERATION_STARTED = "generation_started"
    ASSIGNMENT_DISTRIBUTED = "assignment_distributed"
    OFFSETS_COMMITTED = "offsets_committed"
    OFFSETS_REMOVED = "offsets_removed"
    TRANSACTION_PENDING = "transaction_pending"
    TRANSACTION_COMPLETED = "transaction_completed"
    TRANSACTION_REVERTED = "transaction_reverted"
