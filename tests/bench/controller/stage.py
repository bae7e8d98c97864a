"""What a controller finds: a real ZooKeeper (near, or behind a delay), stub brokers, topics."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path
from typing import Any

import psutil

from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.zk.client import ZkSession
from streaming.zk.multiread import ZNodeColumns, read_many
from streaming.zk.znodes import topic_path
from streaming.zk.znodes.controller import CONTROLLER_PATH
from tests.bench.load import PARTITIONS_PER_TOPIC, create_topics, state_paths, topic_name
from tests.bench.worker import Worker
from tests.fixtures.ensemble import ZooKeeperEnsemble

LISTENER = "CLIENT"
MAX_PACKET_BYTES = 8 << 20
_HEAP_MB = 1500
_HEAP_BYTES_PER_PARTITION = 3000
_KEEP_TOLD_BELOW = 200_000
_POLL_S = 0.05
_PAUSES = 1.5
_ZXID = re.compile(rb"Zxid: 0x([0-9a-f]+)")


class Stage:
    """ZooKeeper and brokers 1..n, with their topics, but no controller."""

    def __init__(
        self,
        folder: Path,
        *,
        partitions: int,
        brokers: int,
        loaded: bool,
        delay_ms: float = 0.0,
        ensemble: bool = False,
    ) -> None:
        """Start all; `delay_ms` each way stands between the controller and ZooKeeper, which has
        three servers with `ensemble`.
        """
        self.folder = folder
        self.partitions = partitions
        self.broker_ids = list(range(1, brokers + 1))
        heap_mb = _HEAP_MB + partitions * _HEAP_BYTES_PER_PARTITION // 1_000_000
        made = ZooKeeperEnsemble if ensemble else EmbeddedZooKeeper
        self._zookeeper = made(
            folder / "zookeeper", max_heap_mb=heap_mb, max_packet_bytes=MAX_PACKET_BYTES
        )
        self.connect = self._zookeeper.start()
        self.session = ZkSession(self.connect, 60_000)
        self.session.connect()
        self.keeps_told = partitions < _KEEP_TOLD_BELOW
        keep = ["keep"] if self.keeps_told else []
        arguments = [self.connect, LISTENER, *keep]
        self.stubs = Worker("tests.bench.stub_brokers", arguments, folder / "stubs.log")
        self._proxy: Worker | None = None
        if delay_ms:
            arguments = [str(self._servers[0].port), str(delay_ms)]
            self._proxy = Worker("tests.bench.delay_proxy", arguments, folder / "proxy.log")
            self.connect = f"127.0.0.1:{self._proxy.ask('listen')}"
        self.session.ensure_path("/brokers/topics")
        if loaded:
            create_topics(self.session, partitions, brokers)
        self.paths = state_paths(partitions)
        self.epochs: dict[int, int] = {}
        self._took_epochs(self.stubs.ask("start", ids=self.broker_ids))

    def drop(self, ids: list[int]) -> None:
        """Let brokers die, all in one ZooKeeper transaction."""
        self.stubs.ask("drop", ids=ids)

    def register(self, ids: list[int]) -> None:
        """Let brokers return, all in one ZooKeeper transaction."""
        self._took_epochs(self.stubs.ask("register", ids=ids))

    def states(self) -> ZNodeColumns:
        """Return the state znodes of all partitions."""
        self.session.sync()
        return read_many(self.session, self.paths)

    def topics(self) -> ZNodeColumns:
        """Return the znodes of all topics, which say where their partitions are."""
        self.session.sync()
        count = -(-self.partitions // PARTITIONS_PER_TOPIC)
        return read_many(self.session, [topic_path(topic_name(one)) for one in range(count)])

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Return what runs beside the controller, by kind: this process too, as `benchmark`."""
        workers = {"stubs": self.stubs, "proxy": self._proxy}
        return {
            "zookeeper": [psutil.Process(one.pid) for one in self._servers],
            **{kind: [psutil.Process(one.pid)] for kind, one in workers.items() if one is not None},
            "benchmark": [psutil.Process()],
        }

    def controller_since_ms(self) -> int | None:
        """Return when the present controller was elected, None when there is none."""
        znode = self.session.get(CONTROLLER_PATH)
        return None if znode is None else znode.mtime_ms

    def summary(self, since_ns: int) -> dict[str, Any]:
        """Return what came at the brokers since a moment."""
        return self.stubs.ask("summary", since_ns=since_ns)

    def wait_for_silence(self, silence_s: float, timeout_s: float) -> None:
        """Wait until for a while no request comes and nothing is written to ZooKeeper.

        Whoever paused before may do so again: the silence is longer than any pause so far.
        """
        seen, since = None, time.monotonic()
        deadline = since + timeout_s
        while time.monotonic() - since < silence_s:
            now = (self._zxid(), self.summary(0)["last_ns"])
            if now != seen:
                silence_s = max(silence_s, _PAUSES * (time.monotonic() - since))
                seen, since = now, time.monotonic()
            if time.monotonic() > deadline:
                raise TimeoutError(f"no silence within {timeout_s} s, see {self.folder}")
            time.sleep(_POLL_S)

    def close(self) -> None:
        self.stubs.close()
        if self._proxy is not None:
            self._proxy.close()
        self.session.close()
        self._zookeeper.stop()

    @property
    def _servers(self) -> list[EmbeddedZooKeeper]:
        zookeeper = self._zookeeper
        return zookeeper.servers if isinstance(zookeeper, ZooKeeperEnsemble) else [zookeeper]

    def _zxid(self) -> int:
        """Return the newest transaction that any server has."""
        return max(_last_zxid(one.port) for one in self._servers)

    def _took_epochs(self, epochs: dict[str, int]) -> None:
        self.epochs.update({int(id_): epoch for id_, epoch in epochs.items()})


def _last_zxid(port: int) -> int:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as asked:
        asked.sendall(b"srvr")
        found = _ZXID.search(asked.makefile("rb").read())
    return int(found.group(1), 16)
