"""The jars that pyspark brings along: a ZooKeeper server and Ivy are among them."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from streaming.errors import HelmstreamError


class SparkJarsMissing(HelmstreamError):
    """pyspark's jar folder, or a jar in it, is not where it should be."""

    exit_code = 3

    def __init__(self, looked_for: str) -> None:
        super().__init__(f"{looked_for} was not found; is pyspark installed by pip?")
        self.looked_for = looked_for


def spark_jars(patterns: Sequence[str]) -> list[Path]:
    """Return the jars that match the patterns, in their order.

    Raises SparkJarsMissing where a pattern has none.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkJarsMissing("the package pyspark")
    folder = Path(spec.origin).parent / "jars"
    found: list[Path] = []
    for pattern in patterns:
        matching = sorted(folder.glob(pattern))
        if not matching:
            raise SparkJarsMissing(str(folder / pattern))
        found += matching
    return found
