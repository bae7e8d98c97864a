"""What TLS, logins and rights cost: CPU of a connection with its first request, and of a request on
an open one, client and gateway in one process, as ratios to those of a plain connection.

Run as `python -m tests.bench.bench_secured`. Rounds are interleaved, and the least of them is told,
which other work on the machine disturbs least.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from streaming.gateway.server import Listener
from streaming.keyfiles.renewed import https_context
from streaming.security.acls import ANY, Acl, AclTable, Operation, Pattern, ResourceType
from streaming.security.authorizer import AclAuthorizer
from streaming.security.connector import Connector
from streaming.security.oauthbearer.server import BearerServer, Expected, TokenValidator
from streaming.security.oauthbearer.signing_keys import SigningKeys
from streaming.security.ourselves import Credentials
from streaming.security.principals import ANONYMOUS
from streaming.security.proofs import bearer_conversation
from streaming.security.sasl_server import Sasl
from streaming.security.scram import ScramCredential
from streaming.security.tls import client_context, server_context
from streaming.setting_types import OAUTHBEARER
from streaming.settings_loader import load_settings
from streaming.tokens.own_tokens import ClientLogin, OwnTokens
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint
from streaming.wire.exchange import CLIENT_ID, Exchange
from streaming.wire.requests import encode_request
from tests.fixtures.certificates import Authority
from tests.fixtures.token_issuer import TokenIssuer
from tests.unit.gateway.support import running
from tests.unit.security.support import credential

ROUNDS = 9
CONNECTIONS = 20
REQUESTS = 500
TOPICS = 5_000
HOUR_MS = 3_600_000
USER, PASSWORD = "alice", "wonder"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
CREDENTIALS = {mechanism: credential(mechanism, PASSWORD) for mechanism in MECHANISMS[1:]}
REQUEST = encode_request(
    ApiKey.METADATA,
    12,
    0,
    CLIENT_ID,
    {"topics": [{"name": "topic-7", "topic_id": None}], "allow_auto_topic_creation": False},
)


@dataclass(frozen=True)
class Case:
    """A gateway's end, and how a client connects to it."""

    connector: Connector
    end: Endpoint

    async def connect(self) -> None:
        """Ask once, on a connection of its own."""
        connection = await self.connector.open(self.end)
        try:
            await connection.ask(REQUEST)
        finally:
            connection.abort()


async def known(mechanism: str, _: str) -> ScramCredential:
    """What is known of the user."""
    return CREDENTIALS[mechanism]


def authorizer(*super_users: str) -> AclAuthorizer:
    """Who may describe each of many topics, one by one."""
    mine = [Acl(ANONYMOUS, ANY, Operation.READ, allowed=True)]
    topics = {
        Pattern(ResourceType.TOPIC, f"topic-{number}", prefixed=False): mine
        for number in range(TOPICS)
    }
    found = AclAuthorizer(super_users, allow_without_acls=False)
    found.take(AclTable(topics))
    return found


async def cases(folder: Path, stack: AsyncExitStack) -> dict[str, Case]:
    """Start a gateway for each case."""
    authority = Authority(folder)
    key, trusted = authority.keystore("node"), authority.trusted
    given = [f"ssl.keystore.location={key}", f"ssl.truststore.location={trusted}"]
    settings = load_settings(overrides=given, environment={})
    issuer = stack.enter_context(TokenIssuer({USER: PASSWORD}))
    keys = SigningKeys(issuer.keys_url, HOUR_MS, https_context("", ""))
    validator = TokenValidator(keys, Expected((), "", "sub", 0))
    mechanisms = (*MECHANISMS, OAUTHBEARER)
    others = {OAUTHBEARER: partial(BearerServer, validator)}
    sasl = Sasl(mechanisms, {USER: PASSWORD}, known, others=others)
    client = client_context(settings)
    tokens = OwnTokens(issuer.token_url, ClientLogin(USER, PASSWORD), https_context("", ""))

    async def started(
        listener: Listener, connector: Connector, rights: AclAuthorizer | None = None
    ) -> Case:
        rig = await stack.enter_async_context(running(listeners=[listener], authorizer=rights))
        vars(asyncio.get_running_loop()).pop(
            "getaddrinfo"
        )  # made-up brokers are asked nothing here
        rig.cluster.create("topic-7", [[1]])
        (end,) = rig.gateway.endpoints()
        return Case(connector, end)

    def listener(*, tls: bool = False, named: bool = False) -> Listener:
        context = server_context(settings, sasl=named) if tls else None
        return Listener("BENCH", "127.0.0.1", 0, tls=context, sasl=sasl if named else None)

    found = {
        "plain": await started(listener(), Connector()),
        "rights": await started(listener(), Connector(), authorizer()),
        "super_user": await started(listener(), Connector(), authorizer(ANONYMOUS)),
        "tls": await started(listener(tls=True), Connector(client)),
    }
    begin = {OAUTHBEARER: lambda _: bearer_conversation(tokens.get)}
    for mechanism in mechanisms:
        ours = Credentials(mechanism, USER, PASSWORD, begin.get(mechanism))
        found[mechanism] = await started(listener(named=True), Connector(ours=ours))
    ours = Credentials(MECHANISMS[-1], USER, PASSWORD)
    secured = Connector(client, ours)
    found[f"tls {MECHANISMS[-1]}"] = await started(listener(tls=True, named=True), secured)
    return found


async def cpu_us(work: Callable[[], Awaitable[object]], times: int) -> float:
    """CPU of this process for doing something once, of several times."""
    start = time.process_time()
    for _ in range(times):
        await work()
    return (time.process_time() - start) / times * 1e6


async def measured(ends: Mapping[str, Case]) -> dict[str, dict[str, float]]:
    """Microseconds by case: of a connection, and of a request."""
    connections: dict[str, Exchange] = {
        name: await case.connector.open(case.end) for name, case in ends.items()
    }
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    order, chance = list(ends), random.Random(1)
    for _ in range(ROUNDS):
        chance.shuffle(order)  # what came before is not always the same
        for name in order:
            case = ends[name]
            found["connection"][name].append(await cpu_us(case.connect, CONNECTIONS))
            ask = connections[name]
            found["request"][name].append(await cpu_us(lambda ask=ask: ask.ask(REQUEST), REQUESTS))
    for connection in connections.values():
        connection.abort()
    return {
        what: {name: min(times) for name, times in sorted(by.items())} for what, by in found.items()
    }


async def run() -> None:
    """Measure, and write a line for each."""
    async with AsyncExitStack() as stack:
        with tempfile.TemporaryDirectory() as folder:
            found = await measured(await cases(Path(folder), stack))
    for what, by in found.items():
        for name, cost_us in by.items():
            line = {
                "bench": f"secured_{what}",
                "case": name,
                "cpu_us": round(cost_us),
                "ratio": round(cost_us / by["plain"], 2),
            }
            sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    asyncio.run(run())
