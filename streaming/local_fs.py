"""A Hadoop file system for local disks that does not fork a process for each new file.

Without Hadoop's native library every file that a checkpoint creates runs `chmod` in a child
process. The jar is fetched once, like Kafka's; without it everything works, slower.
"""

from __future__ import annotations

import logging
from pathlib import Path

from streaming.embedded.ivy import Artifact, ArtifactsUnavailable, fetch_jars

logger = logging.getLogger(__name__)

_ARTIFACT = Artifact("com.globalmentor", "hadoop-bare-naked-local-fs", "0.1.0", "master")


def local_fs_jar() -> Path | None:
    """Return the jar, or None when it cannot be had here."""
    try:
        return fetch_jars(f"{_ARTIFACT.name}-{_ARTIFACT.revision}", [_ARTIFACT]) / _ARTIFACT.jar
    except ArtifactsUnavailable as error:
        logger.warning("checkpoint files will take longer: %s", error)
        return None
