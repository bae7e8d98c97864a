"""A front as a real process, a job that only says it folded everything, and Kafka's znodes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from state.events import parse_payload
from streaming.embedded.process import ChildProcess
from streaming.errors import NotRunning
from streaming.image.cluster_image import ClusterImage
from streaming.link.job_side import JobLink, LinkDown
from streaming.log.api import LogError
from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from streaming.sockets.status_socket import fetch_status
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.zk.client import ZkSession
from streaming.zk.znodes import (
    BrokerZNode,
    TopicZNode,
    broker_bytes,
    broker_path,
    config_bytes,
    config_change_bytes,
    entity_config_path,
    partition_state_bytes,
    partition_state_path,
    topic_bytes,
    topic_path,
)
from tests.fixtures.connected import Connected
from tests.fixtures.waiting import WAIT_S, wait_for
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS

POLL_S = 0.02
CONTROLLER_ID = 1000

Observed = tuple[str, str, dict[str, Any]]
"""(kind, key, body) of an event."""


def stays(what: str, true: Callable[[], Any], for_s: float) -> None:
    """Fail when something is not true at any look within for_s."""
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        assert true(), f"not true any more: {what}"
        time.sleep(POLL_S)


class FrontProcess:
    """`python -m streaming.front` on a data folder; program: what is run instead."""

    def __init__(
        self,
        data_dir: Path,
        zookeeper: str,
        *,
        program: Sequence[str] = ("-m", "streaming.front"),
        **settings: object,
    ) -> None:
        self.data_dir = data_dir
        values = {
            "zookeeper.connect": zookeeper,
            "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
            "gateway.port": 0,
            "gateway.listeners": "CLIENT",
            "controller.id": CONTROLLER_ID,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        chosen = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
        argv = [sys.executable, *program, "--data-dir", str(data_dir), *chosen]
        self.process = ChildProcess.start("front", argv, log_path=data_dir / "log" / "front.log")

    def status(self) -> dict[str, Any]:
        return fetch_status(self.data_dir, WAIT_S)

    def wait_status(self, what: str, true: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Wait for a status of which something is true, and return it."""
        self.wait_listening()
        return wait_for(what, lambda: true(status := self.status()) and status)

    def wait_listening(self) -> None:
        """Wait for an answer on the socket that is opened after the link's."""

        def listening() -> bool:
            self.process.check_running()
            try:
                return bool(self.status())
            except NotRunning:
                return False

        wait_for("the front's sockets", listening)

    def wait_role(self, role: str) -> dict[str, Any]:
        return self.wait_status(f"role {role}", lambda status: status["role"] == role)

    def wait_end(self) -> int | None:
        """Wait for its end and return its code."""
        assert self.process.wait(WAIT_S)
        return self.process.return_code

    def events(self, start: int = 0) -> list[Observed]:
        """All events from an offset on; each must be one that the machines can read."""
        try:
            reader = EmbeddedLogReader(DataDir(self.data_dir).events)
        except LogError:
            return []
        with reader:
            records = list(reader.read(start, reader.end_offset()))
        for record in records:
            parse_payload(record.as_event())
        return [(r.kind, r.key, orjson.loads(r.payload)) for r in records]

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [body for found, _, body in self.events() if found == kind]

    def wait_events(self, kind: str, count: int) -> list[dict[str, Any]]:
        """Wait for that many events of a kind, and return all of them."""
        return wait_for(
            f"{count} {kind}", lambda: len(bodies := self.of_kind(kind)) >= count and bodies
        )

    def stop(self) -> int | None:
        self.process.terminate(WAIT_S)
        return self.process.return_code


class FakeJob:
    """A job on the real link that reports everything as folded until it is told to be silent.

    snapshot: what it tells as its image when that is not `image`. silent: from the beginning.
    batch_id: None in a head start.
    """

    def __init__(
        self,
        data_dir: Path,
        image: ClusterImage | None = None,
        snapshot: bytes | None = None,
        silent: bool = False,
        batch_id: int | None = 1,
        **head: Any,
    ) -> None:
        folders = DataDir(data_dir)
        whole = ClusterImage() if image is None else image
        self._snapshot = whole.snapshot() if snapshot is None else snapshot
        self._batch_id = batch_id
        self._head = head
        self._events = folders.events
        self._silent = threading.Event()
        if silent:
            self._silent.set()
        self._ended = threading.Event()
        self._done = -1
        self.link = JobLink(folders.link, on_connected=self._connected)
        self.connected = Connected(self.link)
        self._thread = threading.Thread(target=self._fold, daemon=True)
        self.link.start()
        self._thread.start()

    def _connected(self, link: JobLink) -> None:
        link.send({"type": "image", **self._head}, self._snapshot)

    def _fold(self) -> None:
        while not self._ended.wait(POLL_S):
            if self._silent.is_set() or not self.connected.wait(0):
                continue
            with EmbeddedLogReader(self._events) as reader:
                end = reader.end_offset()
            if end != self._done:
                try:
                    batch = {"type": "batch", "batch_id": self._batch_id, "end_offset": end}
                    self.link.send(batch)
                    self._done = end
                except LinkDown:
                    continue

    def silence(self) -> None:
        """Fold nothing any more, but stay connected."""
        self._silent.set()

    def resume(self) -> None:
        self._silent.clear()

    def say(self, head: Mapping[str, Any], body: bytes = b"") -> None:
        assert self.connected.wait(WAIT_S)
        self.link.send(dict(head), body)

    def end(self) -> None:
        self._ended.set()
        self._thread.join(60)
        self.link.stop()


def put_broker(
    session: ZkSession,
    broker_id: int,
    *,
    host: str = "127.0.0.1",
    port: int = 9092,
    listeners: Sequence[str] = ("CLIENT",),
    protocols: Mapping[str, SecurityProtocol] | None = None,
    rack: str | None = None,
) -> int:
    """Register a broker for as long as the session lives, and return its czxid.

    protocols: those of listeners that are not PLAINTEXT.
    """
    plain = dict.fromkeys(listeners, SecurityProtocol.PLAINTEXT)
    ends = [
        Endpoint(listener=name, host=host, port=port, security_protocol=protocol)
        for name, protocol in (plain | dict(protocols or {})).items()
    ]
    session.ensure_path("/brokers/ids")
    path = broker_path(broker_id)
    session.create(path, broker_bytes(BrokerZNode(ends, rack), 1), ephemeral=True)
    return session.get(path).czxid


def put_config(session: ZkSession, entity_type: str, name: str, config: Mapping[str, str]) -> None:
    """Set an entity's configuration as Kafka's tools do: the znode, then a change notification."""
    path = entity_config_path(entity_type, name)
    session.ensure_path(path)
    session.set(path, config_bytes(config))
    session.ensure_path("/config/changes")
    change = config_change_bytes(f"{entity_type}/{name}")
    session.create_sequential("/config/changes/config_change_", change)


def put_topic(
    session: ZkSession,
    name: str,
    assignment: Sequence[Sequence[int]],
    *,
    topic_id: str | None = None,
    states: bool = True,
    leader_epoch: int = 4,
) -> None:
    """Create a topic; with states, each partition is led by its first replica."""
    session.ensure_path("/brokers/topics")
    replicas = dict(enumerate(assignment))
    session.create(topic_path(name), topic_bytes(TopicZNode(replicas, topic_id)))
    for partition, ids in replicas.items() if states else ():
        put_state(session, name, partition, (ids[0], leader_epoch, ids))


def put_state(
    session: ZkSession, topic: str, partition: int, state: tuple[int, int, Sequence[int]]
) -> None:
    """Write a partition's state, (leader, leader epoch, ISR), under controller epoch 1."""
    leader, leader_epoch, isr = state
    path = partition_state_path(topic, partition)
    data = partition_state_bytes([leader], [leader_epoch], [list(isr)], 1, [0])[0]
    if session.get(path) is None:
        session.ensure_path(path)
    session.set(path, data)
