"""How many files a process may have open: sockets must leave room for its logs."""

from __future__ import annotations

import logging
import resource

logger = logging.getLogger(__name__)

RESERVED = 1_024
"""Files and sockets of the front beside clients' connections: logs, ZooKeeper, the job, brokers."""

JOB_FILES = 16_384
"""Files and sockets of the job: a connection to each broker, logs, what its workers inherit."""


def allow_open_files(wanted: int) -> int:
    """Let this process and its children open so many files; return how many they may.

    A process begins with its soft limit (often 1,024) and may raise it up to its hard limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


def admissible_connections(wanted: int) -> int:
    """Let the front open enough files for so many connections; return how many it may serve."""
    allowed = allow_open_files(wanted + RESERVED)
    if allowed == wanted + RESERVED:
        return wanted
    admitted = max(allowed - RESERVED, 1)
    logger.warning(
        "max.connections is %d, but only %d connections are served: the limit of open files is %d"
        " (ulimit -Hn), of which %d are kept for logs, ZooKeeper and brokers",
        wanted,
        admitted,
        allowed,
        RESERVED,
    )
    return admitted
