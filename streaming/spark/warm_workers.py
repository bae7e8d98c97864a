"""Starts Spark's Python workers before they are needed, and keeps them while nothing happens.

Spark ends Python workers when nobody used any for a minute (PythonWorkerFactory's monitor; no
setting changes it), and the next batch then waits for new ones to start and import everything:
twelve times as long as any other.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

EVERY_S = 45.0
"""Well within Spark's minute: its monitor looks every ten seconds."""


class WarmWorkers:
    """Uses as many Python workers as a batch has tasks, now and then, outside of any query."""

    def __init__(
        self, spark: SparkSession, workers: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with workers that were just used."""
        self._spark = spark
        self._workers = workers
        self._clock = clock
        self._used_s = clock()
        self._using: threading.Thread | None = None

    def look(self) -> bool:
        """Use the workers if it is time to; return whether it was. For a loop that polls: it does
        not wait for them, nor for cores that others have.
        """
        if self._clock() - self._used_s < EVERY_S:
            return False
        self._used_s = self._clock()
        if self._using is None or not self._using.is_alive():
            self.start()
        return True

    def start(self) -> None:
        """Use the workers, beside what else is being done."""
        self._using = threading.Thread(target=self._use, name="warm-workers", daemon=True)
        self._using.start()

    def _use(self) -> None:
        try:
            rows = self._spark.range(0, self._workers, 1, self._workers)
            rows.mapInArrow(_as_it_is, rows.schema).collect()
        except Exception as error:  # noqa: BLE001 - of any kind when the session ends meanwhile
            logger.warning("Python workers could not be kept warm: %s", error)


def _as_it_is(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import streaming.operator  # noqa: F401, PLC0415 - a worker has it for the first batch then

    yield from batches
