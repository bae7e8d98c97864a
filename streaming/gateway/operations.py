"""Authorized operations as bit fields (KIP-430); without an authorizer everything is allowed."""

from __future__ import annotations

from enum import IntEnum

NOT_ASKED = -(2**31)
"""What responses carry when the client did not ask."""


class _Operation(IntEnum):
    """org.apache.kafka.common.acl.AclOperation: the code is the bit's position."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def _bits(*operations: _Operation) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(
    _Operation.READ,
    _Operation.WRITE,
    _Operation.CREATE,
    _Operation.DELETE,
    _Operation.ALTER,
    _Operation.DESCRIBE,
    _Operation.DESCRIBE_CONFIGS,
    _Operation.ALTER_CONFIGS,
)
GROUP_OPERATIONS = _bits(_Operation.READ, _Operation.DELETE, _Operation.DESCRIBE)
CLUSTER_OPERATIONS = _bits(
    _Operation.CREATE,
    _Operation.ALTER,
    _Operation.DESCRIBE,
    _Operation.CLUSTER_ACTION,
    _Operation.DESCRIBE_CONFIGS,
    _Operation.ALTER_CONFIGS,
    _Operation.IDEMPOTENT_WRITE,
)
