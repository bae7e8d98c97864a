"""How many files the front may have open: connections must leave room for its logs."""

from __future__ import annotations

import logging
import resource

logger = logging.getLogger(__name__)

RESERVED = 256
"""Files and sockets beside clients' connections: logs, ZooKeeper, the job, brokers."""


def admissible_connections(wanted: int) -> int:
    """Let this process open enough files for so many connections; return how many it may serve.

    A process begins with its soft limit (often 1,024) and may raise it up to its hard limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed == needed:
        return wanted
    admitted = max(allowed - RESERVED, 1)
    logger.warning(
        "max.connections is %d, but only %d connections are served: the limit of open files is %d"
        " (ulimit -Hn), of which %d are kept for logs, ZooKeeper and brokers",
        wanted,
        admitted,
        hard,
        RESERVED,
    )
    return admitted
