"""Which function of a group slot folds which payload: the slot's dispatch table."""

from __future__ import annotations

from state.groups import (
    assignment_events,
    offset_events,
    ownership,
    presence,
    refused_records,
    requests,
    timer_events,
)
from state.groups.payloads.offsets import (
    CommittedTopicsDeleted,
    GroupRecordsOvertaken,
    GroupRecordsRefused,
    OffsetCommitRequested,
    OffsetDeleteRequested,
    OffsetsAppended,
    OffsetsExpirationDue,
    TransactionCompleted,
    TxnOffsetCommitRequested,
)
from state.groups.payloads.ownership import (
    GroupCoordinatorConfigured,
    GroupObserved,
    GroupPartitionsElected,
    GroupPartitionsLoaded,
    GroupPartitionsResigned,
    GroupTimerDue,
)
from state.groups.payloads.requests import (
    AssignmentAppended,
    DeleteGroupRequested,
    HeartbeatsReceived,
    JoinGroupRequested,
    LeaveGroupRequested,
    SyncGroupRequested,
)
from state.groups.slot import GroupSlot
from state.handlers import Handlers

GROUP_HANDLERS: Handlers[GroupSlot] = {
    JoinGroupRequested: requests.on_group_request,
    SyncGroupRequested: requests.on_group_request,
    LeaveGroupRequested: requests.on_group_request,
    OffsetCommitRequested: requests.on_group_request,
    TxnOffsetCommitRequested: requests.on_group_request,
    OffsetsAppended: offset_events.on_offsets_appended,
    AssignmentAppended: assignment_events.on_assignment_appended,
    CommittedTopicsDeleted: offset_events.on_committed_topics_deleted,
    OffsetDeleteRequested: requests.on_group_request,
    DeleteGroupRequested: requests.on_group_request,
    GroupObserved: ownership.on_group_observed,
    GroupRecordsRefused: refused_records.on_group_records_refused,
    GroupRecordsOvertaken: refused_records.on_group_records_overtaken,
    HeartbeatsReceived: presence.on_heartbeats_received,
    GroupTimerDue: timer_events.on_group_timer_due,
    OffsetsExpirationDue: offset_events.on_offsets_expiration_due,
    GroupCoordinatorConfigured: timer_events.on_group_coordinator_configured,
    GroupPartitionsElected: ownership.on_group_partitions_elected,
    GroupPartitionsLoaded: ownership.on_group_partitions_loaded,
    GroupPartitionsResigned: ownership.on_group_partitions_resigned,
    TransactionCompleted: offset_events.on_transaction_completed,
}
