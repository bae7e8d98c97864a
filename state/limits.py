"""How large a topic may be: what nobody has, and would take memory without end."""

from __future__ import annotations

REPLICAS_MAX = 1_000
"""Most replicas of a partition, those that come and go in a reassignment counted, and most members
of an ISR: such lists are rows of matrices, where the longest one sets the width of all.
"""

PARTITIONS_MAX = 50_000
"""Most partitions that a topic can be asked to have: its znode with three replicas each still fits
into ZooKeeper's default limit (jute.maxbuffer) of 1 MiB, and no request makes the job build tables
without end.
"""
