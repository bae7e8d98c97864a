"""Which partition of which topic."""

from __future__ import annotations

from typing import TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
"""A topic's name, and the number of one of its partitions."""
