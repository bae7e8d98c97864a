"""Serves metrics to Prometheus over HTTP: figures are collected when they are asked for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, Histogram, start_http_server
from prometheus_client.registry import Collector

from streaming.front.metric_families import Family, families
from streaming.link.from_job import BatchCompleted
from streaming.preflight import bind_failure
from streaming.process.wall_clock import wall_clock_ms

_STATUS_TIMEOUT_S = 10.0
_SILENCE_TIMEOUT_S = 10.0
"""What each read and write of a connection may take: it has a thread and a descriptor of ours."""
_SECONDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0)


class MetricsServer:
    """Answers scrapes on threads of its own; the status is taken on the event loop."""

    def __init__(
        self,
        host: str,
        port: int,
        status: Callable[[], Mapping[str, Any]],
        now_ms: Callable[[], int],
    ) -> None:
        """Remember where to listen; must be made on the event loop that `status` belongs to.

        now_ms: the clock of events' times.
        """
        self._address = (host, port)
        self._now_ms = now_ms
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_StatusCollector(asyncio.get_running_loop(), status))
        self._batch_s = Histogram(
            "helmstream_batch_duration_seconds",
            "What a micro-batch took from its decisions to its end",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._written_s = Histogram(
            "helmstream_event_to_zookeeper_seconds",
            "From the first event of a micro-batch until ZooKeeper had what it decided",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._serving: tuple[WSGIServer, threading.Thread] | None = None

    def start(self) -> None:
        """Listen; raises PortTaken, ConfigurationError or OSError."""
        host, port = self._address
        try:
            self._serving = start_http_server(port, host, self._registry)
            self._serving[0].RequestHandlerClass = _Handler
        except OSError as error:
            raise bind_failure(error, host, port, "metrics") from error

    def stop(self) -> None:
        """Stop listening; takes up to half a second. May be called without `start`."""
        if self._serving is not None:
            server, thread = self._serving
            server.shutdown()
            server.server_close()
            thread.join()

    def batch_completed(self, batch: BatchCompleted) -> None:
        """Take what the job says of a batch."""
        if batch.duration_ms is not None:
            self._batch_s.observe(batch.duration_ms / 1000)
        if batch.first_event_ms is not None:
            # The job has the wall's time, events have another for hours after that was set.
            ahead_ms = self._now_ms() - wall_clock_ms()
            took_ms = batch.written_at_ms + ahead_ms - batch.first_event_ms
            self._written_s.observe(max(took_ms, 0) / 1000)


class _Handler(WSGIRequestHandler):
    """Serves a connection; one that is silent or hangs up is none that anybody has to hear of."""

    timeout = _SILENCE_TIMEOUT_S

    def handle(self) -> None:
        """Serve its request."""
        with suppress(OSError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Log no request."""


class _StatusCollector(Collector):
    """Takes one status for each scrape."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, status: Callable[[], Mapping[str, Any]]
    ) -> None:
        self._loop = loop
        self._status = status

    def collect(self) -> Iterator[Family]:
        async def taken() -> Mapping[str, Any]:
            return self._status()

        asked = asyncio.run_coroutine_threadsafe(taken(), self._loop)
        yield from families(asked.result(_STATUS_TIMEOUT_S))
