"""A Spark session for commands that need one only sometimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
            from streaming.spark.local_fs import local_fs_jar
            from streaming.spark.session import open_spark

            self._session = open_spark(self._settings, local_fs_jar())
        return self._session

    def __enter__(self) -> LazySpark:
        return self

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            self._session.stop()
