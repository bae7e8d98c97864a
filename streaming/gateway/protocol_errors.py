"""Error codes that the gateway answers with by itself
(org.apache.kafka.common.protocol.Errors). Those of decisions are in `state.protocol_errors`.
"""

from __future__ import annotations

from enum import IntEnum


class GatewayError(IntEnum):
    """Codes by their name in the protocol."""

    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    REPLICA_NOT_AVAILABLE = 9
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_SASL_MECHANISM = 33
    UNSUPPORTED_VERSION = 35
    INVALID_CONFIG = 40
    POLICY_VIOLATION = 44
    TRANSACTION_COORDINATOR_FENCED = 52
    LISTENER_NOT_FOUND = 72
    UNKNOWN_LEADER_EPOCH = 75
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
