"""Numbers that records have for what access control lists and configurations are about."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.security.acls import ResourceType
from streaming.wire.config_resource import ConfigResourceType

RESOURCE_TYPES: Mapping[int, ResourceType] = {
    2: ResourceType.TOPIC,
    3: ResourceType.GROUP,
    4: ResourceType.CLUSTER,
    5: ResourceType.TRANSACTIONAL_ID,
    6: ResourceType.DELEGATION_TOKEN,
    7: ResourceType.USER,
}
"""org.apache.kafka.common.resource.ResourceType."""

QUOTA_ENTITIES: Mapping[str, str] = {"user": "users", "client-id": "clients", "ip": "ips"}
"""What folders of znodes are called that have quotas, by what the protocol calls an entity
(KIP-546).
"""

LITERAL, PREFIXED = 3, 4
"""Of org.apache.kafka.common.resource.PatternType."""

DENY, ALLOW = 2, 3
"""Of org.apache.kafka.common.acl.AclPermissionType."""

CONFIGURED: Mapping[int, str] = {
    ConfigResourceType.TOPIC: "topics",
    ConfigResourceType.BROKER: "brokers",
    ConfigResourceType.CLIENT_METRICS: "client-metrics",
    ConfigResourceType.GROUP: "groups",
}
"""What there are configurations of, beside quotas, as folders of znodes are called; of the last two
only in KRaft.
"""
