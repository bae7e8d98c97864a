"""The system under measurement: embedded ZooKeeper, stub brokers, front and job; and its logs."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from state.matrix import unpad
from streaming.embedded.ports import free_ports
from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.errors import HelmstreamError
from streaming.log.api import LogError, LogRecord
from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from streaming.sockets.status_socket import fetch_status
from streaming.supervisor.processes import Supervisor
from streaming.wire.apis import ApiKey
from streaming.zk.client import ZkSession
from streaming.zk.znodes import parse_partition_states, partition_state_path
from tests.bench.worker import Worker
from tests.fixtures import waiting
from tests.fixtures.gateway_client import GatewayClient

POLL_S = 0.02
QUIET_S = 0.15


class System:
    """ZooKeeper and stubs run from the start; `control` starts front and job."""

    def __init__(self, folder: Path, overrides: list[str], *, zookeeper_heap_mb: int = 400) -> None:
        self.folder = folder
        self.data_dir = folder / "helmstream"
        self.zookeeper = EmbeddedZooKeeper(folder / "zookeeper", max_heap_mb=zookeeper_heap_mb)
        self.zookeeper.start()
        self.session = ZkSession(self.zookeeper.connect_string, 30_000)
        self.session.connect()
        self.stubs = Worker(
            "tests.bench.stub_brokers", [self.zookeeper.connect_string], folder / "stubs.log"
        )
        (self.gateway_port,) = free_ports(1)
        chosen = {
            "zookeeper.connect": self.zookeeper.connect_string,
            "gateway.port": self.gateway_port,
            "auto.leader.rebalance.enable": "false",
            "controller.lease.ms": 120_000,
        }
        settings = [*(f"{key}={value}" for key, value in chosen.items()), *overrides]
        self.supervisor = Supervisor(self.data_dir, [f"--set={one}" for one in settings])
        self.folders = DataDir(self.data_dir)

    def control(self, timeout_s: float) -> None:
        """Start front and job and wait until everything is decided, written and answered."""
        self.supervisor.start()
        self.wait_for(self.controls, timeout_s, "control of the cluster")
        self.settle(timeout_s)

    def controls(self) -> bool:
        """Whether the cluster is controlled, and nothing waits for the job."""
        try:
            status = fetch_status(self.data_dir, 10)
        except HelmstreamError:
            return False
        return status["role"] == "active" and status["job"]["pid"] and not status["job"]["lag"]

    def settle(self, timeout_s: float = 60) -> None:
        """Wait until all events are folded, every broker has answered, and nothing has come of it
        for a moment.
        """
        events, outcomes = Log(self.folders.events), Log(self.folders.outcomes)

        def settled() -> bool:
            ends = events.end(), outcomes.end()
            time.sleep(QUIET_S)
            if ends != (events.end(), outcomes.end()) or self._unanswered():
                return False
            folded = [one["end_offset"] for one in outcomes.bodies("persisted", ends[1] - 500)]
            return max(filter(None, folded), default=-1) == ends[0]

        self.wait_for(settled, timeout_s, "quiet")

    def _unanswered(self) -> bool:
        return bool(orjson.loads(self.folders.pending.read_bytes())["pending"])

    def wait_for(self, true: Callable[[], Any], timeout_s: float, what: str) -> None:
        def come() -> Any:
            for role in self.supervisor.roles.values():
                role.child.check_running()
            return true()

        waiting.wait_for(f"{what} (see {self.folder})", come, timeout_s, poll_s=POLL_S)

    def close(self) -> None:
        self.supervisor.stop()
        self.stubs.close()
        self.session.close()
        self.zookeeper.stop()

    def __enter__(self) -> System:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Log:
    """One log of the system, empty until it is there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reader: EmbeddedLogReader | None = None

    def end(self) -> int:
        if self._reader is None:
            try:
                self._reader = EmbeddedLogReader(self._folder)
            except LogError:
                return 0
        return self._reader.end_offset()

    def records(self, start: int = 0) -> list[LogRecord]:
        end = self.end()
        return list(self._reader.read(max(start, 0), end)) if end else []

    def bodies(self, kind: str, start: int = 0) -> list[dict[str, Any]]:
        return [orjson.loads(one.payload) for one in self.records(start) if one.kind == kind]


def altered(
    partition: int,
    isr: list[int],
    leader_epoch: int,
    partition_epoch: int,
    broker_epochs: Mapping[int, int],
) -> dict[str, Any]:
    """Return a partition of an AlterPartition request; broker_epochs: -1 for one without."""
    return {
        "partition_index": partition,
        "leader_epoch": leader_epoch,
        "new_isr_with_epochs": [
            {"broker_id": id_, "broker_epoch": broker_epochs[id_]} for id_ in isr
        ],
        "leader_recovery_state": 0,
        "partition_epoch": partition_epoch,
    }


@dataclass(frozen=True, slots=True)
class State:
    """A partition's state znode."""

    leader: int
    leader_epoch: int
    isr: list[int]
    version: int
    mtime_ms: int


def read_state(session: ZkSession, topic: str, partition: int) -> State:
    znode = session.get(partition_state_path(topic, partition))
    read = parse_partition_states([znode.data], [znode.version])
    isr = unpad(read.isr[0])
    return State(int(read.leader[0]), int(read.leader_epoch[0]), isr, znode.version, znode.mtime_ms)


def alter_partition(
    gateway: GatewayClient,
    topic_id: uuid.UUID,
    partition: int,
    state: State,
    *,
    isr: list[int],
    epochs: Mapping[int, int],
) -> None:
    """Ask, as the partition's leader, for another ISR; it must be accepted."""
    asked = altered(partition, isr, state.leader_epoch, state.version, epochs)
    body = {
        "broker_id": state.leader,
        "broker_epoch": epochs[state.leader],
        "topics": [{"topic_id": topic_id, "partitions": [asked]}],
    }
    answer = gateway.ask(ApiKey.ALTER_PARTITION, 3, body)
    assert answer["error_code"] == 0, answer
    assert answer["topics"][0]["partitions"][0]["error_code"] == 0, answer
