"""The controllers that are compared: Kafka's own in a real broker; ours with or without Spark."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson

from streaming.embedded.broker import KafkaBroker
from streaming.embedded.ports import free_ports
from streaming.errors import HelmstreamError
from streaming.paths import DataDir
from streaming.settings_loader import load_settings
from streaming.sockets.status_socket import fetch_status
from streaming.supervisor.processes import FRONT, JOB, Supervised, role_command, stop_together
from streaming.zk.client import ZkSession
from streaming.zk.znodes import CONTROLLER_PATH, parse_controller_id
from tests.differential.cluster import LISTENER, SESSION_TIMEOUT_MS, wait_until
from tests.fixtures.folding_job import BackgroundJob

STOCK_ID = 0
OUR_ID = 1000
_START_S = 180.0
_STATUS_TIMEOUT_S = 10


class StockController:
    """A real broker of Kafka 3.9 that hosts nothing and is the controller."""

    name = "Kafka"
    node_id = STOCK_ID
    timeout_ms = 1_000
    waits_for_brokers = True

    def __init__(self, connect: str, folder: Path) -> None:
        """Launch the broker; `wait` makes sure that it controls."""
        config = {
            "auto.create.topics.enable": "false",
            "auto.leader.rebalance.enable": "false",
            "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        }
        self._broker = KafkaBroker(STOCK_ID, connect, folder, config=config, single_listener=True)
        self._broker.launch()
        self.port = self._broker.client_port
        self.log_path = self._broker.log_path

    def wait(self, session: ZkSession) -> None:
        """Wait until the broker is the controller."""
        self._broker.wait_until_ready(_START_S)
        wait_until("Kafka's controller", lambda: holder(session) == STOCK_ID, _deadline())

    def busy(self) -> str | None:
        """Nothing is known of its queue: the barrier tells."""
        return None if self._broker.running else "the broker has ended"

    def close(self) -> None:
        """Kill the broker."""
        self._broker.kill()


class OurController:
    """Front and job; without Spark the job is a thread of this process."""

    name = "helmstream"
    node_id = OUR_ID
    timeout_ms = 60_000
    waits_for_brokers = False

    def __init__(self, connect: str, folder: Path, *, spark: bool) -> None:
        """Start front and job; `wait` makes sure that they control."""
        (self.port,) = free_ports(1)
        self.data_dir = folder
        chosen = {
            "data.dir": folder,
            "zookeeper.connect": connect,
            "zookeeper.session.timeout.ms": 30_000,
            "gateway.port": self.port,
            "gateway.listeners": LISTENER,
            "inter.broker.listener.name": LISTENER,
            "controller.id": OUR_ID,
            "controller.lease.ms": 120_000,
            "auto.leader.rebalance.enable": "false",
            "retry.backoff.ms": 20,
        }
        overrides = [f"{key}={value}" for key, value in chosen.items()]
        options = [f"--set={one}" for one in overrides]
        self._roles = [
            Supervised(role, role_command(role, folder, options), folder / "log" / f"{role}.log")
            for role in ((JOB, FRONT) if spark else (FRONT,))
        ]
        for role in self._roles:
            role.start()
        self._job: BackgroundJob | None = None
        if not spark:
            wait_until("the front", self._serving, _deadline())
            self._job = BackgroundJob(load_settings((), overrides, {}))

    def wait(self, session: ZkSession) -> None:
        """Wait until we are the controller and have told everybody."""

        def ready() -> bool:
            return self._serving() and holder(session) == OUR_ID and self.busy() is None

        wait_until("our controller", ready, _deadline())

    def busy(self) -> str | None:
        """Return what front or job have not done yet."""
        self._serving()
        try:
            status = self._status()
        except HelmstreamError as error:
            return str(error)
        if status["role"] != "active":
            return f"the role is {status['role']}"
        if status["job"]["lag"]:
            return f"{status['job']['lag']} events are not folded"
        waiting = self._unconfirmed(status)
        if waiting:
            return f"brokers have not answered: {waiting}"
        return None if self._job is None else self._job.busy()

    def close(self) -> None:
        """End the job, then the front."""
        if self._job is not None:
            self._job.close()
        stop_together(self._roles)

    def _serving(self) -> bool:
        """Return whether the front is there; a job that ended is started again, as always."""
        for role in self._roles:
            if role.role == JOB:
                role.keep_running()
            else:
                assert role.child is not None
                role.child.check_running()
        return DataDir(self.data_dir).status_socket.exists()

    def _status(self) -> dict[str, Any]:
        return fetch_status(self.data_dir, _STATUS_TIMEOUT_S)

    def _unconfirmed(self, status: dict[str, Any]) -> list[str]:
        """Return registered brokers that have not answered everything."""
        path = DataDir(self.data_dir).pending
        pending = orjson.loads(path.read_bytes())["pending"] if path.exists() else {}
        return sorted(set(pending) & {str(one) for one in status["brokers"] or ()})


def holder(session: ZkSession) -> int | None:
    """Return who is the controller."""
    znode = session.get(CONTROLLER_PATH)
    return None if znode is None else parse_controller_id(znode.data)


def _deadline() -> float:
    return time.monotonic() + _START_S
