"""The two ZooKeeper servers of the comparison, and a place on each for every run."""

from __future__ import annotations

import itertools
from pathlib import Path

from streaming.embedded.zookeeper import EmbeddedZooKeeper

_HEAP_MB = 200


class Servers:
    """A ZooKeeper server for each side; a run has a tree of its own on both."""

    def __init__(self, folder: Path) -> None:
        """Put everything into a folder; its path has to be short, for sockets are made in it."""
        self._folder = folder
        self._numbers = itertools.count(1)
        self._servers = [
            EmbeddedZooKeeper(folder / f"zookeeper-{name}", max_heap_mb=_HEAP_MB)
            for name in ("kafka", "ours")
        ]

    def places(self, name: str) -> tuple[Path, str, str]:
        """Return the folder and the two connect strings of the next run; the name is for people."""
        place = f"{next(self._numbers)}-{name}"
        connects = [f"{server.connect_string}/{place}" for server in self._servers]
        return self._folder / place, connects[0], connects[1]

    def __enter__(self) -> Servers:
        for server in self._servers:
            server.start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.stop()
