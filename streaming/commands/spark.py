"""A Spark session for commands that need one only sometimes."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from rich.console import Console

from streaming.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LazySpark:
    """Opens a session when it is first called; use as a context manager to have it stopped."""

    def __init__(self, settings: Settings) -> None:
        """Take the settings; start nothing."""
        self._settings = settings
        self._session: SparkSession | None = None

    def __call__(self) -> SparkSession:
        """Return the session."""
        if self._session is None:
            from streaming.spark.apart import open_spark_apart

            waiting = Console(stderr=True).status("starting Spark")  # nothing without a terminal
            with tempfile.TemporaryFile() as printed, waiting:
                self._session = open_spark_apart(self._settings, printed)
        return self._session

    def __enter__(self) -> LazySpark:
        return self

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            self._session.stop()
