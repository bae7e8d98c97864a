"""A front that is not started, and an image, with figures that a test makes up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from state.matrix import pad_rows, widen
from streaming.front.front import Front
from streaming.image.cluster_image import ClusterImage
from streaming.link.messages import Message
from streaming.log.embedded import EmbeddedLogWriter
from streaming.process.wall_clock import wall_clock_ms
from streaming.settings_loader import load_settings

BROKERS = (1, 2)


def brokers_body(ids: Sequence[int] = BROKERS) -> Any:
    ends = [{"listener": "A", "host": "127.0.0.1", "port": 9, "security_protocol": 0}]
    return {
        "controller_id": 1000,
        "controller_epoch": 4,
        "epoch_zk_version": 4,
        "controller_endpoints": ends,
        "complete": False,
        "brokers": [{"id": id_, "epoch": 5, "rack": None, "endpoints": ends} for id_ in ids],
    }


def image_of(rows: Sequence[tuple[int, list[int], list[int]]]) -> ClusterImage:
    """Partitions of topic `t` as (leader, ISR, replicas), and BROKERS."""
    image = ClusterImage()
    image.update_brokers(brokers_body())
    replicas = pad_rows([row[2] for row in rows])
    numbers = np.zeros(len(rows), dtype=np.int32)
    columns = {
        "topic": numbers,
        "partition": np.arange(len(rows), dtype=np.int32),
        "leader": np.array([row[0] for row in rows], dtype=np.int32),
        "leader_epoch": numbers,
        "partition_epoch": numbers,
        "controller_epoch": numbers,
        "recovery": numbers.astype(np.int8),
        "isr": widen(pad_rows([row[1] for row in rows]), replicas.shape[1]),
        "replicas": replicas,
        **{
            name: np.zeros(replicas.shape, dtype=bool) for name in ("offline", "adding", "removing")
        },
    }
    image.upsert(columns, ["t"], [None])
    return image


def made_front(folder: Path, *overrides: str) -> tuple[Front, EmbeddedLogWriter]:
    """A front on an open log; must be called on a running event loop. The log is to be closed."""
    writer = EmbeddedLogWriter(folder / "events")
    chosen = [f"data.dir={folder}", *overrides]
    settings = load_settings(overrides=chosen, environment={})
    return Front(settings, writer, wall_clock_ms), writer


def play_job(front: Front) -> None:
    """A job comes, sends its image and completes one batch."""
    front._feed.job_connected(77)
    image = image_of([(1, [1, 2], [1, 2]), (2, [2], [1, 2]), (-1, [1], [1, 2])])
    say(front, {"type": "image", "queue_lengths": {"1": 0, "2": 5}}, image.snapshot())
    batch = {
        "type": "batch",
        "batch_id": 1,
        "end_offset": 0,
        "decisions": 3,
        "conflicts": 1,
        "fenced": False,
        "first_event_ms": 1_000,
        "written_at_ms": 1_250,
        "duration_ms": 80.0,
        "elections": {"unclean_elected": 2, "new_partition_elected": 3},
        "queue_lengths": {"1": 2, "2": 5},
    }
    say(front, batch)
    say(front, {"type": "delivery", "brokers": {"1": {"confirmed": 7, "at_ms": 1}}})


def say(front: Front, head: dict[str, Any], body: bytes = b"") -> None:
    for _ in front._feed.job_said(Message(head, body)):
        pass
