"""What a running front says about itself, and the socket on which it says it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from state.blocks import Column
from state.matrix import any_in_row, lengths
from state.partitions import election
from state.partitions.table import NO_LEADER
from streaming.front.clock import Clock
from streaming.front.controller_role import ControllerRole
from streaming.front.event_log import EventLog
from streaming.front.gateway import FrontGateway
from streaming.front.groups.assembly import Groups
from streaming.front.job_progress import JobProgress
from streaming.front.lease import Lease
from streaming.front.pending_requests import PendingRequests
from streaming.front.seen import Seen
from streaming.front.signals import Signals
from streaming.front.unclean_recovery import UncleanRecovery
from streaming.front.unix_server import UnixServer
from streaming.image.brokers import endpoint_on
from streaming.image.cluster_image import ClusterImage
from streaming.link.pause import Pause
from streaming.process.counters import Counters

_LEADERLESS_COUNTS = ("offline_partitions", "leaderless")
_PARTITION_COUNTS = (*_LEADERLESS_COUNTS, "under_replicated", "imbalanced", "led_by_deprioritized")


class StatusServer:
    """Writes one JSON object to whoever connects, and hangs up (`streaming.sockets`)."""

    def __init__(self, path: Path, status: Callable[[], dict[str, Any]]) -> None:
        """Remember where to listen and what to say; `start` listens."""
        self._status = status
        self._server = UnixServer(path, self._serve)

    async def start(self) -> None:
        """Listen."""
        await self._server.start()

    async def stop(self) -> None:
        """Stop listening."""
        await self._server.stop()

    async def _serve(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(orjson.dumps(self._status(), option=orjson.OPT_NON_STR_KEYS))
            await writer.drain()
        except OSError:
            pass  # whoever asked is gone
        finally:
            writer.close()


def front_status(
    *,
    seen: Seen,
    role: ControllerRole,
    signals: Signals,
    log: EventLog,
    lease: Lease,
    now_s: float,
    progress: JobProgress,
    image: ClusterImage | None,
    deprioritized: tuple[int, ...],
    listener: str,
    checks_shutdowns: bool,
    clock: Clock,
    pending: PendingRequests,
    gateway: FrontGateway,
    groups: Groups,
    recovery: UncleanRecovery,
    counters: Counters,
) -> dict[str, Any]:
    """Return what `helmstream status` shows; docs/status.md says what each field means.

    now_s: the lease's time. listener: on which brokers hear the controller. checks_shutdowns:
    whether controlled shutdowns may be refused.
    """
    claim = role.claim
    return {
        "role": str(role.phase),
        **_pause_status(progress.pause),
        "epoch": None if claim is None else claim.epoch,
        "in_doubt": claim is not None and signals.in_doubt,
        "controller": seen.holder,
        "cluster_id": seen.cluster_id,
        "migration": seen.migration,
        "event_log": {"start_offset": log.start_offset(), "end_offset": log.end_offset()},
        "job": _job_status(progress, lease, now_s),
        **image_status(image, deprioritized),
        "untold_brokers": untold_brokers(image, listener),
        "checks_shutdowns": checks_shutdowns,
        "waiting_for_log_ends": recovery.waiting,
        "topics_to_delete": seen.topics_to_delete,
        "timers": dict(clock.armed),
        "waiting_requests": pending.waiting + groups.waiting,
        "gateway": gateway.counters(),
        "certificate_ends_ms": gateway.certificate_ends_ms(),
        "groups": groups.status(),
        "counters": dict(sorted(counters.items())),
        "elections": dict(progress.elections),
        "delivery": progress.delivery,
        "queue_lengths": progress.queue_lengths,
    }


def _pause_status(pause: Pause | None) -> dict[str, Any]:
    known = pause or Pause()
    return {
        "paused": pause is not None,
        "pause_reason": known.reason,
        "paused_since_ms": known.since_ms,
    }


def _job_status(progress: JobProgress, lease: Lease, now_s: float) -> dict[str, Any]:
    return {
        "pid": progress.pid,
        "completed_offset": lease.completed,
        "lag": lease.lag,
        "oldest_waiting_ms": round(lease.oldest_waiting_s(now_s) * 1000),
        "last_batch_time_ms": progress.batch_time_ms,
        "last_batch": progress.batch,
        **progress.totals,
    }


def untold_brokers(image: ClusterImage | None, listener: str) -> list[int] | None:
    """Return the ids of registered brokers that have no address on a listener, so that nothing can
    be told to them; None before the first image.
    """
    if image is None:
        return None
    brokers = image.brokers.items()
    return sorted(id_ for id_, one in brokers if endpoint_on(one.node, listener) is None)


def image_status(image: ClusterImage | None, deprioritized: Sequence[int] = ()) -> dict[str, Any]:
    """Return counts of what the image holds; all None before the first image.

    offline_partitions: those whose leader is not a registered broker, or whose state is gone;
    leaderless: those of them that have no leader at all; deleting: topics whose deletion has
    started, which count nowhere else; under_replicated: those whose ISR is smaller than the
    assignment; imbalanced: those that their preferred replica does not lead, one that a
    reassignment adds once it is in sync; led_by_deprioritized: those led by a broker of
    leader.deprioritized.list.
    """
    if image is None:
        return dict.fromkeys(("brokers", "topics", "partitions", "deleting", *_PARTITION_COUNTS))
    return {
        "brokers": sorted(image.brokers),
        "topics": len({*image.topic_names(), *(topic for topic, _ in image.stateless)}),
        "partitions": len(image) + len(image.stateless),
        "deleting": sorted(image.deleting),
        **_partition_counts(image, deprioritized),
    }


def _partition_counts(image: ClusterImage, deprioritized: Sequence[int]) -> dict[str, int]:
    stateless = len(image.stateless)
    if not len(image):
        return dict.fromkeys(_PARTITION_COUNTS, 0) | dict.fromkeys(_LEADERLESS_COUNTS, stateless)
    columns = image.columns
    leader = columns["leader"]
    led_last = election.deprioritized(leader, deprioritized)
    in_sync = lengths(columns["isr"])
    assigned = lengths(columns["replicas"])
    return {
        "offline_partitions": stateless + int(np.count_nonzero(~image.registered(leader))),
        "leaderless": stateless + int(np.count_nonzero(leader == NO_LEADER)),
        "under_replicated": int(np.count_nonzero(in_sync < assigned)),
        "imbalanced": _imbalanced(columns, deprioritized),
        "led_by_deprioritized": int(np.count_nonzero(led_last)),
    }


def _imbalanced(columns: Mapping[str, Column], deprioritized: Sequence[int]) -> int:
    """Return how many partitions are not led by their preferred replica
    (ControllerContext.hasPreferredLeader): one that is being added counts once it is in sync.
    """
    replicas, isr = columns["replicas"], columns["isr"]
    last = election.deprioritized(replicas, deprioritized)
    preferred = election.preferred_replicas(replicas, last)
    added = (columns["adding"] & (replicas == preferred[:, None])).any(axis=1)
    in_sync = any_in_row(isr[added] == preferred[added, None])
    elsewhere = ~added & (columns["leader"] != preferred)
    return int(np.count_nonzero(elsewhere) + np.count_nonzero(in_sync))
