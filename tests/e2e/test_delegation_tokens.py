"""Delegation tokens, with real brokers: made at either, good at both until they end."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from streaming.wire.apis import ApiKey
from tests.e2e.group_clients import TOPIC, JavaClient
from tests.e2e.named_cluster import ALICE, SCRAM, WONDER, Named, shared_named
from tests.e2e.named_users import User
from tests.e2e.securing import brokers, coordinated_here, create, gateway
from tests.e2e.shared import Shared
from tests.e2e.waiting import wait_for
from tests.fixtures.kafka_tools import NEW, KafkaTools

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:unclosed <s:ResourceWarning"),
]

SESSION_S = 5
BOB, BUILD = "bob", "build"
GRANTED = {
    "delegation.token.secret.key": "never tell",
    "delegation.token.expiry.check.interval.ms": "1000",
    "connections.max.reauth.ms": str(SESSION_S * 1_000),
}
_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared[Named]]:
    """Brokers and this node have the same key, and sessions that end."""
    with shared_named(tmp_path_factory, {ALICE: WONDER, BOB: BUILD}, GRANTED) as clusters:
        yield clusters


@pytest.fixture
def named(clusters: Shared[Named]) -> Named:
    return clusters.get()


@dataclass(frozen=True)
class Told:
    """What Kafka's tool tells of a token."""

    token_id: str
    hmac: str
    owner: str
    expires: str


class Tokens:
    """Kafka's own tool, used by somebody who has a password."""

    def __init__(self, named: Named, folder: Path, user: str = ALICE, password: str = WONDER):
        self._named, self._folder = named, folder
        self._how = KafkaTools(NEW, [], folder).properties(user, named.java(user, password))

    def create(self, at: str, *options: str, life_ms: int = -1) -> Told:
        (told,) = self._run(at, "--create", "--max-life-time-period", str(life_ms), *options)
        return told

    def describe(self, at: str) -> dict[str, Told]:
        of_alice = ("--owner-principal", f"User:{ALICE}")
        return {one.token_id: one for one in self._run(at, "--describe", *of_alice)}

    def renew(self, at: str, token: Told, period_ms: int) -> None:
        self._run(at, "--renew", "--renew-time-period", str(period_ms), "--hmac", token.hmac)

    def expire(self, at: str, token: Told) -> None:
        self._run(at, "--expire", "--expiry-time-period", "-1", "--hmac", token.hmac)

    def _run(self, at: str, *options: str) -> list[Told]:
        tools = KafkaTools(NEW, ["--bootstrap-server", at], self._folder)
        said = tools("kafka-delegation-tokens", *options, "--command-config", self._how)
        rows = re.findall(
            r"^(\S{22}) +(\S{88}) +(User:\S+) +\S+ +.*?(\S+) +\S+ *$", said, re.MULTILINE
        )
        return [Told(*row) for row in rows]


def with_token(named: Named, token: Told) -> dict[str, str]:
    """How somebody connects who has a token."""
    jaas = f'{_MODULE} required username="{token.token_id}" password="{token.hmac}"'
    return named.java() | {"sasl.jaas.config": f'{jaas} tokenauth="true";'}


def topics(named: Named, at: str, token: Told, folder: Path, *, fails: bool = False) -> str:
    """What who has a token is told."""
    tools = KafkaTools(NEW, ["--bootstrap-server", at], folder)
    how = tools.properties(f"token-{token.token_id}", with_token(named, token))
    return tools("kafka-topics", "--list", "--command-config", how, fails=fails)


def test_a_token_is_good_wherever_it_was_made(named: Named, tmp_path: Path) -> None:
    ours, theirs = gateway(named.cluster), brokers(named.cluster)[0]
    create(named.cluster, tmp_path, "seen", named.java())
    alice = Tokens(named, tmp_path)
    for made_at in (ours, theirs):
        token = alice.create(made_at, "--renewer-principal", f"User:{BOB}")
        assert token.owner == f"User:{ALICE}"
        for at in (ours, theirs):
            wait_for("the token", lambda at=at, id_=token.token_id: id_ in alice.describe(at))
            assert "seen" in topics(named, at, token, tmp_path).split()


def test_a_broker_tells_the_same_of_tokens_as_this_node(named: Named) -> None:
    """Kafka's tools ask any node; this asks each."""
    alice, bob = User(named, ALICE, WONDER), User(named, BOB, BUILD)
    asked = {
        "owner_principal_type": "User",
        "owner_principal_name": BOB,
        "renewers": [{"principal_type": "User", "principal_name": ALICE}],
        "max_lifetime_ms": 900_000,
    }
    (made,) = alice.asks_us([(ApiKey.CREATE_DELEGATION_TOKEN, 3, asked)])
    assert (made["principal_name"], made["token_requester_principal_name"]) == (BOB, ALICE)
    proof = {"hmac": made["hmac"]}
    described = (ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, {"owners": None})

    def told() -> list[Any]:
        """All that both say of it, once they say the same."""

        def same() -> tuple[list[Any]] | None:
            (ours,), (theirs,) = (ask([described]) for ask in (bob.asks_us, bob.asks_broker))
            return (ours["tokens"],) if ours == theirs else None

        (tokens,) = wait_for("the same", same)
        return [one for one in tokens if one["hmac"] == made["hmac"]]

    (token,) = told()
    assert token["expiry_timestamp"] == token["max_timestamp"] == made["max_timestamp_ms"]
    for ask, period_ms in ((alice.asks_us, 60_000), (bob.asks_broker, 120_000)):
        (renewed,) = ask(
            [(ApiKey.RENEW_DELEGATION_TOKEN, 2, {**proof, "renew_period_ms": period_ms})]
        )
        assert told() == [token | {"expiry_timestamp": renewed["expiry_timestamp_ms"]}]
    ending = (ApiKey.EXPIRE_DELEGATION_TOKEN, 2, {**proof, "expiry_time_period_ms": -1})
    (ended,) = bob.asks_us([ending])
    assert ended["error_code"] == 0
    assert told() == []
    assert bob.asks_us([ending]) == bob.asks_broker([ending])


def test_a_token_is_renewed_by_whom_it_names_and_ended_by_its_owner(
    named: Named, tmp_path: Path
) -> None:
    ours, theirs = gateway(named.cluster), brokers(named.cluster)[1]
    alice, bob = Tokens(named, tmp_path), Tokens(named, tmp_path, BOB, BUILD)
    token = alice.create(ours, "--renewer-principal", f"User:{BOB}")
    bob.renew(ours, token, 600_000)

    def expires(at: str) -> str | None:
        told = alice.describe(at).get(token.token_id)
        return None if told is None else told.expires

    assert expires(ours) not in (None, token.expires)
    wait_for("it at the broker", lambda: expires(theirs) == expires(ours))
    assert topics(named, ours, token, tmp_path)
    alice.expire(ours, token)
    assert expires(ours) is None
    wait_for("its end at the broker", lambda: expires(theirs) is None)
    for at in (ours, theirs):
        assert "invalid credentials" in topics(named, at, token, tmp_path, fails=True)


def test_what_has_expired_is_deleted_and_forgotten(named: Named, tmp_path: Path) -> None:
    ours, theirs = gateway(named.cluster), brokers(named.cluster)[2]
    alice = Tokens(named, tmp_path)
    token = alice.create(theirs, life_ms=1_500)
    for at in (theirs, ours):  # brokers tell of what has ended until they are told that it is gone
        wait_for("its end", lambda at=at: token.token_id not in alice.describe(at))
        assert "invalid credentials" in topics(named, at, token, tmp_path, fails=True)


def test_who_comes_with_a_token_stays_in_a_group_from_session_to_session(
    named: Named, tmp_path: Path
) -> None:
    cluster = named.cluster
    create(cluster, tmp_path, TOPIC, named.java())
    token = Tokens(named, tmp_path).create(gateway(cluster))
    group = "by-token"
    wait_for("this coordinator", lambda: coordinated_here(cluster, group))
    config = KafkaTools(NEW, [], tmp_path).properties("consumer", with_token(named, token))
    consumer = JavaClient(brokers(cluster), group, tmp_path, "--consumer.config", config)
    producer = KafkaProducer(
        bootstrap_servers=brokers(cluster), acks="all", **named.python(SCRAM, WONDER)
    )

    def refused() -> int:
        gateways = cluster.status()["gateway"]
        return sum(int(gateways.get(f"closed_{why}", 0)) for why in ("refused", "unauthenticated"))

    try:
        commits, before, end_s = consumer.commits(), refused(), time.monotonic() + 4 * SESSION_S
        while time.monotonic() < end_s:
            offset = producer.send(TOPIC, b"x").get(60).offset
            for committed in commits:
                assert not isinstance(committed, str), committed
                if committed and committed.get(0, 0) > offset:
                    break
            time.sleep(SESSION_S / 10)
        assert refused() == before
    finally:
        consumer.close()
        producer.close()
