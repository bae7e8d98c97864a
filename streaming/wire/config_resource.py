"""What kinds of resources have configs, as requests about configs number them."""

from __future__ import annotations

from enum import IntEnum


class ConfigResourceType(IntEnum):
    """org.apache.kafka.common.config.ConfigResource.Type, of which these are known here."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
