"""Authorized operations as bit fields (KIP-430) where no authorizer says otherwise: all of them."""

from __future__ import annotations

from streaming.security.acls import SUPPORTED, ResourceType
from streaming.security.authorizer import operation_bits

NOT_ASKED = -(2**31)
"""What responses carry when the client did not ask."""

TOPIC_OPERATIONS = operation_bits(SUPPORTED[ResourceType.TOPIC])
GROUP_OPERATIONS = operation_bits(SUPPORTED[ResourceType.GROUP])
CLUSTER_OPERATIONS = operation_bits(SUPPORTED[ResourceType.CLUSTER])
