"""A gateway on real sockets, a made-up cluster behind it, and a client that speaks the codec."""

from __future__ import annotations

import asyncio
import random
import socket
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NoReturn

import orjson

from state.blocks import decode_block
from state.decisions import DecisionKind
from state.events import Event, parse_payload
from state.merge import merge
from state.routing import GROUP_SLOTS, Layout, machine_keys, scope
from state.step import Machine, fold, new_machine
from streaming.gateway.apis import NodeConfig, build_apis
from streaming.gateway.connection import Limits
from streaming.gateway.create_topics import TopicDefaults
from streaming.gateway.delegation_tokens import TokenTerms
from streaming.gateway.mutation_quotas import Rate
from streaming.gateway.ports import DecisionTimedOut, NotController
from streaming.gateway.server import Gateway, Listener
from streaming.gateway.serving import Rights
from streaming.image.cluster_image import ClusterImage
from streaming.security.authorizer import Authorizer
from streaming.security.delegation_tokens import DelegationToken
from streaming.security.mapping_rules import mapping_rules
from streaming.security.newcomers import Naming, PrincipalBuilder
from streaming.wire.frames import FrameSplitter, frame
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from tests.fixtures.documented_events import assert_documented
from tests.fixtures.waiting import WAIT_S, wait_on_loop

NODE_ID = 1000
CLUSTER_ID = "vPeOCWypqUOSepEvx0cbog"
LISTENERS = (Listener("CLIENT", "127.0.0.1", 0), Listener("INTERNAL", "127.0.0.1", 0))
DEFAULTS = TopicDefaults(partitions=2, replication_factor=1)
BURST_S = 10.0
TERMS = TokenTerms("hush", max_lifetime_ms=10_000, renewal_ms=4_000)


def registration(broker: int, *listeners: str, rack: str | None = None) -> dict[str, Any]:
    """A broker on host b<id>, ports 29100 + id and so on, one per listener."""
    endpoints = [
        {"listener": name, "host": f"b{broker}", "port": 29000 + 100 * index + broker}
        | {"security_protocol": 0}
        for index, name in enumerate(listeners, start=1)
    ]
    return {"id": broker, "epoch": 100 + broker, "rack": rack, "endpoints": endpoints}


BROKERS = (
    registration(1, "CLIENT", "INTERNAL", rack="a"),
    registration(2, "CLIENT", "INTERNAL", rack="b"),
    registration(3, "INTERNAL", rack="c"),
)


class FakeUsers:
    """Configurations of users, in memory; fail is raised instead of a change."""

    def __init__(self) -> None:
        self.configs: dict[str, dict[str, str]] = {}
        self.fail: OSError | None = None

    async def alter(self, user: str, changes: Mapping[str, str | None]) -> bool:
        if self.fail is not None:
            raise self.fail
        config = dict(self.configs.get(user, {}))
        for key, value in changes.items():
            if value is not None:
                config[key] = value
            elif config.pop(key, None) is None:
                return False
        self.configs[user] = config
        return True


class FakeTokens:
    """Delegation tokens, in memory; fail is raised instead of anything."""

    def __init__(self) -> None:
        self.kept: dict[str, DelegationToken] = {}
        self.fail: OSError | None = None

    async def all(self) -> list[DelegationToken]:
        self._check()
        return [*self.kept.values()]

    async def create(self, token: DelegationToken) -> None:
        self._check()
        self.kept[token.token_id] = token

    async def alter(
        self, token_id: str, alter: Callable[[DelegationToken], DelegationToken | None]
    ) -> DelegationToken | None:
        self._check()
        before = self.kept.get(token_id)
        if before is not None:
            after = alter(before)
            del self.kept[token_id]
            self.kept |= {} if after is None else {token_id: after}
        return before

    def _check(self) -> None:
        if self.fail is not None:
            raise self.fail


class FakeCluster:
    """A gateway's view and its decision client: real machines decide, one slot, no job, no log.

    events: what happened and was submitted, parsed as the job would; gone: topics that ceased to
    exist by it. per_s: how many partitions each client may create and delete. overtaken: somebody
    else controlled since what is known. fail is raised instead of a reply; gate, when there is one,
    holds replies back until it is set.
    """

    def __init__(self) -> None:
        self.cluster_id = CLUSTER_ID
        self.users = FakeUsers()
        self.tokens = FakeTokens()
        self.per_s: float | None = None
        self.controller = True
        self.overtaken = False
        self.known = ClusterImage()
        self.gone: list[str] = []
        self.has_image = True
        self.events: list[Event] = []
        self.fail: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.last: tuple[int, ...] = ()
        self.assigned: dict[str, int] = {}
        """How many partitions a topic has, with those that have no state."""
        self._topic_ids: dict[str, str] = {}
        self._machines: dict[int, Machine] = {key: new_machine(key) for key in (-1, 0)}
        self._offset = 0
        elected = {
            "controller_id": NODE_ID,
            "epoch": 7,
            "epoch_zk_version": 7,
            "config": {},
            "endpoints": registration(NODE_ID, "CLIENT", "INTERNAL")["endpoints"],
        }
        self.happen("controller_elected", "", elected)
        self.happen("broker_registrations_changed", "", {"registered": list(BROKERS)})
        self.happen("resync_completed", "", {"topics": 0})

    async def rate(self, user: str, client_id: str) -> Rate | None:
        return None if self.per_s is None else Rate((user, client_id), self.per_s)

    def image(self) -> ClusterImage | None:
        return self.known if self.has_image else None

    def deprioritized(self) -> tuple[int, ...]:
        return self.last

    def partition_count(self, topic: str) -> int:
        return max(self.assigned.get(topic, 0), self.known.partitions_at_least(topic))

    def is_controller(self) -> bool:
        return self.controller

    def is_current(self) -> bool:
        return self.controller and self.has_image and not self.overtaken

    def happen(self, kind: str, key: str, payload: dict[str, Any]) -> list[dict[str, Any]]:
        """Fold an event, bring the image up to date, and return the replies."""
        event = Event(self._offset, 0, kind, key, orjson.dumps(payload))
        self._offset += 1
        parse_payload(event)
        assert_documented(kind, payload)
        self.events.append(event)
        keys = machine_keys(scope(kind, key), Layout(1, GROUP_SLOTS))
        decided = [decision for key in keys for decision in fold(self._machines[key], [event])]
        replies, remaining = [], []
        for decision in merge(decided):
            assert decision.kind is not DecisionKind.SET_ASIDE, decision
            self.gone += self.known.apply(decision.kind, decision.body)
            if decision.kind is DecisionKind.REPORT_REMAINING:
                columns, extra = decode_block(decision.body)
                names = [extra["topics"][topic] for topic in columns["topic"]]
                numbers = columns["partition"].tolist()
                remaining = [list(pair) for pair in zip(names, numbers, strict=True)]
            if decision.kind is DecisionKind.REPLY:
                replies.append(orjson.loads(decision.body) | {"remaining": remaining})
        return replies

    def create(self, topic: str, assignment: list[list[int]], topic_id: str | None = None) -> str:
        """Create a topic with these replicas, its first replicas lead; returns its id."""
        topic_id = self._topic_ids[topic] = topic_id or f"{topic:_<21.21}A"
        payload = {
            "request_id": "r",
            "topic": topic,
            "topic_id": topic_id,
            "partitions": -1,
            "replication_factor": -1,
            "assignment": {str(p): ids for p, ids in enumerate(assignment)},
            "configs": {},
            "validate_only": False,
            "start_index": 0,
            "shift": 0,
        }
        (reply,) = self.happen("create_topic_requested", topic, payload)
        assert reply["error"] == 0, reply
        return topic_id

    def remove(self, topic: str) -> None:
        """Let a topic that was created be gone."""
        payload = {"topic": topic, "topic_id": self._topic_ids[topic]}
        self.happen("topic_removed", topic, payload)

    async def submit(
        self, kind: str, key: str, payload: dict[str, Any], timeout_s: float
    ) -> dict[str, Any]:
        if self.fail is not None:
            raise self.fail
        if not self.controller:
            raise NotController("not the controller")
        request_id = uuid.uuid4().hex
        replies = self.happen(kind, key, payload | {"request_id": request_id})
        if timeout_s == 0:
            raise DecisionTimedOut("no reply in 0 s")
        if self.gate is not None:
            await self.gate.wait()
        (reply,) = [reply for reply in replies if reply["request_id"] == request_id]
        return reply

    def payloads(self, kind: str) -> list[dict[str, Any]]:
        """Payloads of the events of a kind, in order."""
        return [orjson.loads(event.payload) for event in self.events if event.kind == kind]


class Client:
    """One connection that speaks the codec."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._splitter = FrameSplitter()
        self._frames: list[bytes] = []
        self._last_id = 0
        self.client_id = "test"

    def write(self, api_key: int, version: int, body: dict[str, Any]) -> int:
        """Send a request without waiting; returns its correlation id."""
        self._last_id += 1
        request = encode_request(api_key, version, self._last_id, self.client_id, body)
        self.writer.write(frame(request))
        return self._last_id

    async def read_frame(self) -> bytes:
        """The next response; raises EOFError when the gateway closes instead."""
        async with asyncio.timeout(WAIT_S):
            while not self._frames:
                data = await self.reader.read(65_536)
                if not data:
                    raise EOFError
                self._frames += self._splitter.feed(data)
        return self._frames.pop(0)

    async def ask(self, api_key: int, version: int, body: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its response."""
        expected = self.write(api_key, version, body)
        correlation_id, answer = decode_response(api_key, version, await self.read_frame())
        assert correlation_id == expected
        return answer

    async def wait_closed(self) -> None:
        """Wait until the gateway closes the connection, which must not answer first."""
        async with asyncio.timeout(WAIT_S):
            with suppress(ConnectionError):
                assert await self.reader.read() == b""

    async def close(self) -> None:
        self.writer.transport.abort()


class Rig:
    """A running gateway, its made-up cluster, and clients that are closed with it."""

    def __init__(self, cluster: FakeCluster, gateway: Gateway) -> None:
        self.cluster, self.gateway = cluster, gateway
        self._clients: list[Client] = []

    def port(self, listener: str = "CLIENT") -> int:
        (port,) = [e.port for e in self.gateway.endpoints() if e.listener == listener]
        return port

    async def client(self, listener: str = "CLIENT", **options: Any) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port(listener), **options))
        self._clients.append(client)
        return client

    async def ask(
        self, api_key: int, version: int, body: dict[str, Any], listener: str = "CLIENT"
    ) -> dict[str, Any]:
        """Ask once, on a connection of its own."""
        client = await self.client(listener)
        try:
            return await client.ask(api_key, version, body)
        finally:
            await client.close()

    async def counted(self, name: str, value: int) -> None:
        """Wait until a counter has a value."""
        await wait_on_loop(f"{name} {value}", lambda: self.gateway.counters[name] == value)

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
        await self.gateway.stop()


def node_config(
    cluster: FakeCluster,
    defaults: TopicDefaults = DEFAULTS,
    token_terms: TokenTerms = TERMS,
    **more: Any,
) -> NodeConfig:
    """What a made-up node is told about itself."""
    return NodeConfig(
        node_id=NODE_ID,
        defaults=defaults,
        request_timeout_s=30.0,
        configs={"num.partitions": "2", "data.dir": "/data"},
        users=cluster.users,
        token_terms=token_terms,
        tokens=cluster.tokens,
        mutation_rates=cluster,
        quota_burst_s=BURST_S,
        chance=random.Random(1),
        **more,
    )


async def _no_such_host(host: str, *_: Any, **__: Any) -> NoReturn:
    """Made-up brokers are nowhere, and a resolver may take seconds to say so."""
    raise socket.gaierror(socket.EAI_NONAME, f"no host is named {host}")


@asynccontextmanager
async def running(
    limits: Limits | None = None,
    listeners: Sequence[Listener] = LISTENERS,
    defaults: TopicDefaults = DEFAULTS,
    authorizer: Authorizer | None = None,
    *,
    rules: str = "DEFAULT",
    builder: PrincipalBuilder | None = None,
    token_terms: TokenTerms = TERMS,
    **more: Any,
) -> AsyncIterator[Rig]:
    """A gateway with all APIs in front of a fresh FakeCluster; rules: of certificates' names;
    builder: of principals, instead of them; more: of what the node is told about itself.
    """
    cluster = FakeCluster()
    apis = build_apis(cluster, cluster, node_config(cluster, defaults, token_terms, **more))
    rights = None if authorizer is None else Rights(authorizer, cluster)
    naming = Naming(mapping_rules(rules), lambda _: builder)
    gateway = Gateway(listeners, apis, limits or Limits(), rights, naming)
    await gateway.start()
    asyncio.get_running_loop().getaddrinfo = _no_such_host
    rig = Rig(cluster, gateway)
    try:
        yield rig
    finally:
        await rig.close()


def with_gateway(
    scenario: Callable[[Rig], Awaitable[None]],
    limits: Limits | None = None,
    listeners: Sequence[Listener] = LISTENERS,
    defaults: TopicDefaults = DEFAULTS,
    authorizer: Authorizer | None = None,
) -> None:
    """Run a scenario against a gateway."""

    async def run() -> None:
        async with running(limits, listeners, defaults, authorizer) as rig:
            await scenario(rig)

    asyncio.run(run())
