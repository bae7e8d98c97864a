"""The least a case could take: one empty micro-batch, its ZooKeeper writes, its bytes on sockets.

Each part is measured alone, on the same stage, when the controller has stopped.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from streaming.wire.apis import ApiKey
from streaming.wire.frames import frame
from streaming.wire.partition_rpcs import encode_update_metadata
from streaming.wire.requests import encode_request_header
from streaming.zk.claim import ControllerClaim, claim_controller, resign_controller
from streaming.zk.client import ZkSession
from streaming.zk.fenced import FencedWriter
from streaming.zk.ops import Create, SetData, WriteOp
from streaming.zk.outcomes import OutcomeKind
from streaming.zk.write_limits import WriteLimits
from streaming.zk.znodes import (
    broker_path,
    partition_path,
    partition_state_path,
    partitions_path,
    topic_path,
)
from tests.bench.bench_wire import benchmark_rows
from tests.bench.controller.stage import Stage
from tests.bench.load import PARTITIONS_PER_TOPIC
from tests.bench.worker import Worker

_WRITER_ID = 999
_ZNODES = 50_000
_REQUESTS_PER_BROKER = 4
_EVENTS = 15
_PAUSE_MS = 50


@dataclass(frozen=True, slots=True)
class Floor:
    """Seconds of an empty micro-batch, and three rates."""

    empty_batch_s: float
    written_per_s: float
    created_per_s: float
    rpc_mb_per_s: float

    def of(self, figures: dict[str, Any]) -> float:
        """Return the floor of a case, in seconds: states are written, or created with folders."""
        per_s = self.created_per_s if figures["folders"] else self.written_per_s
        znodes_s = (figures["znodes"] + figures["folders"]) / per_s
        return self.empty_batch_s + znodes_s + figures["rpc_mb"] / self.rpc_mb_per_s


def measure(stage: Stage, overrides: list[str]) -> Floor:
    """Measure all of it; the stage has its topics and no controller."""
    states = stage.states()
    written = zip(stage.paths, states.data, states.version.tolist(), strict=True)
    writes: list[WriteOp] = [SetData(*one) for one in written]
    return Floor(
        _empty_batch_s(stage.folder, overrides),
        _writes_per_s(stage, writes[:_ZNODES]),
        _writes_per_s(stage, _new_topics(states.data[0])),
        _rpc_rate(stage),
    )


def _empty_batch_s(folder: Path, overrides: list[str]) -> float:
    arguments = [str(folder / "empty"), *overrides]
    with Worker("tests.bench.empty_batch", arguments, folder / "empty.log") as empty:
        empty.ask("measure", events=_EVENTS, pause_ms=_PAUSE_MS, all_machines=True)
        found = empty.ask("measure", events=_EVENTS, pause_ms=_PAUSE_MS, all_machines=True)
    return median(found) / 1e3


def _new_topics(state: bytes) -> list[WriteOp]:
    """Return what creates the folders and states of topics that are not there yet."""
    ops: list[WriteOp] = []
    for number in range(_ZNODES // 2 // PARTITIONS_PER_TOPIC):
        topic = f"floor-{number:05d}"
        ops += [Create(topic_path(topic)), Create(partitions_path(topic))]
        for partition in range(PARTITIONS_PER_TOPIC):
            ops += [Create(partition_path(topic, partition))]
            ops += [Create(partition_state_path(topic, partition), state)]
    return ops


def _writes_per_s(stage: Stage, ops: list[WriteOp]) -> float:
    session = ZkSession(stage.connect, 60_000)
    session.connect()
    claim = claim_controller(session, _WRITER_ID, steal=True)
    assert isinstance(claim, ControllerClaim)
    started = time.perf_counter()
    outcomes = FencedWriter(session, claim.epoch_zk_version, WriteLimits()).write(ops)
    took_s = time.perf_counter() - started
    assert {one.kind for one in outcomes} == {OutcomeKind.WRITTEN}
    resign_controller(session, claim)
    session.close()
    return len(ops) / took_s


def _rpc_rate(stage: Stage) -> float:
    header = encode_request_header(ApiKey.UPDATE_METADATA, 8, 1, "bench")
    body = encode_update_metadata(
        8,
        controller_id=_WRITER_ID,
        controller_epoch=1,
        broker_epoch=1,
        rows=benchmark_rows(),
        live_brokers=[],
    )
    request = frame(header + b"".join(body.parts(1)))
    ports = [_port(stage, broker_id) for broker_id in stage.epochs]

    async def send_all() -> None:
        await asyncio.gather(*(_send(port, request) for port in ports))

    started_ns = time.time_ns()
    asyncio.run(send_all())
    took_s = (stage.summary(started_ns)["last_ns"] - started_ns) / 1e9
    stage.stubs.ask("forget")
    return len(ports) * _REQUESTS_PER_BROKER * len(request) / 1e6 / took_s


async def _send(port: int, request: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(_REQUESTS_PER_BROKER):
        writer.write(request)
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    writer.close()


def _port(stage: Stage, broker_id: int) -> int:
    (endpoint,) = orjson.loads(stage.session.get(broker_path(broker_id)).data)["endpoints"]
    return int(endpoint.rpartition(":")[2])
