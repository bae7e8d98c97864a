"""Names of the topics in which Kafka's coordinators keep their state
(org.apache.kafka.common.internals.Topic).
"""

from __future__ import annotations

GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({GROUP_TOPIC, TRANSACTION_TOPIC})
