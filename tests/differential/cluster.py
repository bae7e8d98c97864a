"""One side of the comparison: a ZooKeeper tree and the stub brokers that are registered in it."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.wire.requests import Request
from streaming.zk.client import ZkSession
from streaming.zk.ops import Create, Delete, MultiOp
from streaming.zk.znodes import (
    ISR_CHANGE_PATH,
    LOG_DIR_EVENT_PATH,
    BrokerZNode,
    broker_bytes,
    broker_path,
    parse_topic,
    topic_path,
)
from tests.differential.told import Told, live_brokers
from tests.fixtures.gateway_client import GatewayClient
from tests.fixtures.stub_brokers import StubBrokers
from tests.fixtures.znodes import ISR_CHANGE_PREFIX, isr_change_bytes
from tests.integration.sinks.support import tree

LISTENER = "CLIENT"
COMPARED = ("/brokers/topics", "/admin", "/config")
# What a broker creates when it starts (ZkData.PersistentZkPaths), so that both trees begin alike.
FOLDERS = (
    "/brokers/ids",
    "/brokers/topics",
    "/config/changes",
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
    "/admin/delete_topics",
    ISR_CHANGE_PATH,
    LOG_DIR_EVENT_PATH,
)
SESSION_TIMEOUT_MS = 60_000
WAIT_S = 240.0
_POLL_S = 0.005
_BETWEEN_LOOKS_S = 0.06
_LOOKS_ALIKE = 4

Tree = dict[str, tuple[bytes, int]]
"""Data and version by path."""


class Controller(Protocol):
    """A controller under comparison.

    timeout_ms: what it gets with requests; waits_for_brokers: it answers when brokers have
    followed, or that time is over.
    """

    name: str
    node_id: int
    port: int
    timeout_ms: int
    waits_for_brokers: bool

    def busy(self) -> str | None:
        """Return what it has not done yet, None when it is idle."""

    def close(self) -> None:
        """End it."""


class Unsettled(Exception):
    """A step did not come to an end; says what was still open."""


class Cluster:
    """ZooKeeper, stub brokers and a connection to the controller; a step is done to two of them."""

    def __init__(self, connect: str, ids: Iterable[int]) -> None:
        """Connect, make the folders of an empty cluster, and let the brokers listen."""
        self.connect = connect
        self.session = ZkSession(connect, SESSION_TIMEOUT_MS)
        self.session.connect()
        for path in FOLDERS:
            self.session.ensure_path(path)
        self.stubs = StubBrokers()
        self.stubs.start(*ids)
        self.epochs: dict[int, int] = {}
        self._controller: Controller | None = None
        self._gateway: GatewayClient | None = None

    @property
    def controller(self) -> Controller:
        """The controller of this side, once there is one."""
        assert self._controller is not None, "no controller was started"
        return self._controller

    def controlled_by(self, controller: Controller) -> None:
        """Take the controller of this side."""
        self._controller = controller

    def ask(self, api: ApiKey, version: int, body: dict[str, Any]) -> dict[str, Any]:
        """Ask the controller, as a broker or an administrator does; waits for its answer."""
        if self._gateway is None:
            self._gateway = GatewayClient(self.controller.port)
        return self._gateway.ask(api, version, body)

    def change_brokers(
        self, started: Iterable[int] = (), killed: Iterable[int] = (), bounced: Iterable[int] = ()
    ) -> None:
        """Let brokers start, die, and register anew, all in one transaction.

        A broker that dies or bounces has whole disks when it is there again.
        """
        for broker_id in started:
            if not self.stubs.listening(broker_id):
                self.stubs.start(broker_id)
        for broker_id in (*killed, *bounced):
            self.stubs[broker_id].errors = {}
        deletions: list[MultiOp] = [Delete(broker_path(id_)) for id_ in (*killed, *bounced)]
        self._multi([*deletions, *(self._registration(id_) for id_ in (*started, *bounced))])
        self._read_epochs([*started, *bounced])
        for broker_id in bounced:
            self.stubs.hang_up(broker_id)
        for broker_id in killed:
            del self.epochs[broker_id]
            self.stubs.stop(broker_id)

    def topic_id(self, topic: str) -> uuid.UUID | None:
        """Return the id in a topic's znode."""
        znode = self.session.get(topic_path(topic))
        text = None if znode is None else parse_topic(znode.data).topic_id
        return None if text is None else uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))

    def tree(self) -> Tree:
        """Read everything that is compared."""
        return tree(self.session, *COMPARED)

    def received(self, broker_id: int) -> list[Request]:
        """Return what a broker took since it registered; older requests it would refuse."""
        epoch = self.epochs[broker_id]
        return [one for one in self.stubs[broker_id].received if one.body["broker_epoch"] >= epoch]

    def told(self) -> dict[int, Told]:
        """Return what every registered broker knows by now."""
        return {
            broker_id: Told.of(self.received(broker_id), self.controller.node_id)
            for broker_id in sorted(self.epochs)
        }

    def settle(self) -> Tree:
        """Wait until nothing is open and nothing changes any more; return the tree then.

        A notification about no partition is the yardstick: whatever happened in ZooKeeper before
        it has been taken when it is gone. Raises Unsettled.
        """
        deadline = time.monotonic() + WAIT_S
        alike, last = 0, None
        while alike < _LOOKS_ALIKE:
            if time.monotonic() > deadline:
                raise Unsettled(f"{self.controller.name}: {self._open() or 'still changing'}")
            self._pass_barrier(deadline)
            now = (self.tree(), [len(stub.received) for stub in self.stubs.by_id.values()])
            alike = alike + 1 if now == last and self._open() is None else 0
            last = now
            time.sleep(_BETWEEN_LOOKS_S)
        return self.tree()

    def close(self) -> None:
        """End the controller and the brokers."""
        if self._gateway is not None:
            self._gateway.close()
        if self._controller is not None:
            self._controller.close()
        self.stubs.close()
        self.session.close()

    def _open(self) -> str | None:
        for path in (ISR_CHANGE_PATH, LOG_DIR_EVENT_PATH):
            if self.session.children(path):
                return f"{path} is not empty"
        for broker_id in self.epochs:
            known = live_brokers(self.received(broker_id)) - {self.controller.node_id}
            if known != set(self.epochs):
                return f"broker {broker_id} knows {sorted(known)}, not {sorted(self.epochs)}"
        return self.controller.busy()

    def _pass_barrier(self, deadline: float) -> None:
        path = self.session.create_sequential(
            f"{ISR_CHANGE_PATH}/{ISR_CHANGE_PREFIX}", isr_change_bytes([])
        )
        wait_until("a notification to be taken", lambda: self.session.get(path) is None, deadline)

    def _registration(self, broker_id: int) -> Create:
        port = self.stubs[broker_id].port
        end = Endpoint(
            listener=LISTENER,
            host="127.0.0.1",
            port=port,
            security_protocol=SecurityProtocol.PLAINTEXT,
        )
        return Create(broker_path(broker_id), broker_bytes(BrokerZNode([end]), 1), ephemeral=True)

    def _read_epochs(self, ids: Iterable[int]) -> None:
        for broker_id in ids:
            znode = self.session.get(broker_path(broker_id))
            assert znode is not None
            self.epochs[broker_id] = znode.czxid

    def _multi(self, ops: list[MultiOp]) -> None:
        results = self.session.multi(ops)
        assert all(code == 0 for code, _ in results), (ops, results)


def wait_until(what: str, true: Callable[[], bool], deadline: float) -> None:
    """Wait for something; raises Unsettled at the deadline."""
    while not true():
        if time.monotonic() > deadline:
            raise Unsettled(f"waited too long for {what}")
        time.sleep(_POLL_S)
