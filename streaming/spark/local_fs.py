"""A Hadoop file system for local disks that does not fork a process for each new file.

Without Hadoop's native library every file that a checkpoint creates runs `chmod` in a child
process. The jar is fetched when this machine is prepared; without it everything works, slower.
"""

from __future__ import annotations

import logging
from pathlib import Path

from streaming.embedded.ivy import Artifact, ArtifactsUnavailable, cache_folder, fetch_jars

logger = logging.getLogger(__name__)

# It is on the driver's class path: only this very jar will do.
_ARTIFACT = Artifact(
    "com.globalmentor",
    "hadoop-bare-naked-local-fs",
    "0.1.0",
    "master",
    sha256="e0cc30fb0531eb0b59468dc0abf5b257533d2365b5e9f45e795edd707aa78c62",
)
_FOLDER = f"{_ARTIFACT.name}-{_ARTIFACT.revision}"


def local_fs_jar() -> Path | None:
    """Return the jar, None when it was not fetched: no start waits for a download."""
    folder = cache_folder() / _FOLDER
    if _ARTIFACT.is_in(folder):
        return folder / _ARTIFACT.jar
    if folder.is_dir():
        logger.warning(
            "%s has no %s with SHA-256 %s, and checkpoint files take longer: delete the folder, and"
            " it is fetched anew",
            folder,
            _ARTIFACT.jar,
            _ARTIFACT.sha256,
        )
    return None


def fetch_local_fs_jar() -> None:
    """Fetch the jar unless it is there; what cannot be fetched is only logged.

    Raises JavaMissing, JavaTooOld.
    """
    try:
        fetch_jars(_FOLDER, [_ARTIFACT])
    except ArtifactsUnavailable as error:
        logger.warning("checkpoint files will take longer: %s", error)
