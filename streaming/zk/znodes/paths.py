"""Where things are in Kafka's ZooKeeper tree."""

from __future__ import annotations

from urllib.parse import quote, unquote

BROKER_IDS_PATH = "/brokers/ids"
TOPICS_PATH = "/brokers/topics"
ISR_CHANGE_PATH = "/isr_change_notification"
LOG_DIR_EVENT_PATH = "/log_dir_event_notification"
CONFIG_PATH = "/config"
CONFIG_CHANGES_PATH = "/config/changes"
CONFIG_CHANGE_PREFIX = "config_change_"
DELETE_TOPICS_PATH = "/admin/delete_topics"
DEFAULT_ENTITY = "<default>"
"""Whose configuration all entities of a kind have that have none (ConfigEntityName.Default)."""


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS_PATH}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS_PATH}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS_PATH}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS_PATH}/{topic}/partitions/{partition}"


def partition_state_path(topic: str, partition: int) -> str:
    return f"{TOPICS_PATH}/{topic}/partitions/{partition}/state"


def topic_deletion_path(topic: str) -> str:
    return f"{DELETE_TOPICS_PATH}/{topic}"


def entity_config_path(entity_type: str, entity_name: str) -> str:
    """Where an entity's configuration is; the type is topics, brokers, clients or users."""
    return f"{CONFIG_PATH}/{entity_type}/{entity_name}"


def sanitized(name: str) -> str:
    """Return a user's name as znodes have it (org.apache.kafka.common.utils.Sanitizer)."""
    return quote(name, safe="").replace("~", "%7E")


def desanitized(name: str) -> str:
    """Return the name that `sanitized` made this of."""
    return unquote(name)
