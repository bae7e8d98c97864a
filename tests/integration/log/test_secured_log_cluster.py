"""Logs in topics of a log cluster that wants TLS, a key, and a name with its proof."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from checkpoints.replay import Digest
from streaming.cli import main
from streaming.embedded.kafka_jars import DEFAULT_VERSION
from streaming.log.api import LogUnavailable, NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.kafka_reader import KafkaLogReader
from streaming.log.kafka_tail import KafkaTail
from streaming.log.kafka_writer import KafkaLogWriter
from streaming.log.location import KafkaTopic
from streaming.log.publisher import published
from tests.fixtures.certificates import Authority
from tests.fixtures.folding import fold_log
from tests.fixtures.jaas import login_module
from tests.fixtures.key_distribution import SERVICE, Kdc
from tests.fixtures.log_cluster import (
    LOG_PASSWORD,
    LOG_USER,
    LogCluster,
    escaped,
)
from tests.fixtures.token_issuer import TokenIssuer
from tests.fixtures.waiting import wait_for
from tests.logs.state_logs import long_log

# kafka-python leaves the sockets of refused connections to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore:unclosed <{kind}:ResourceWarning")
    for kind in ("socket", "ssl")
]

MODULES = {"PLAIN": "plain.Plain", "SCRAM-SHA-512": "scram.Scram"}
TOKENS, TICKETS = "OAUTHBEARER", "GSSAPI"
LIFE_S = 6.0
"""Of a token, with which a connection ends, too."""
Client = Callable[..., Path]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def issuer(authority: Authority) -> Iterator[TokenIssuer]:
    clients = {LOG_USER: LOG_PASSWORD}
    with TokenIssuer(clients, authority.keystore("issuer"), LIFE_S) as issuer:
        yield issuer


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority, issuer: TokenIssuer, kdc: Kdc
) -> Iterator[LogCluster]:
    folder = tmp_path_factory.mktemp("secured-log-cluster")
    found = LogCluster(folder / "kafka", authority, issuer.keys_url, kdc, version=DEFAULT_VERSION)
    found.format()
    found.start()
    yield found
    found.kill()


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Have sockets collected while the filter of warnings is in force."""
    yield
    gc.collect()


@pytest.fixture
def client(authority: Authority, issuer: TokenIssuer, kdc: Kdc, tmp_path: Path) -> Client:
    """Writes the properties of a client."""

    def client(mechanism: str, password: str = LOG_PASSWORD) -> Path:
        file = tmp_path / f"{mechanism}.properties"
        file.write_text(
            "bootstrap.servers=elsewhere:9092\n"
            "security.protocol=SASL_SSL\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={authority.trusted}\n"
            f"ssl.keystore.type=PEM\nssl.keystore.location={authority.keystore('client')}\n"
            f"sasl.mechanism={mechanism}\n"
            + {TOKENS: bearer, TICKETS: ticket}.get(mechanism, login)(mechanism, password)
        )
        return file

    def login(mechanism: str, password: str) -> str:
        return (
            "sasl.jaas.config=org.apache.kafka.common.security."
            f"{MODULES[mechanism]}LoginModule required \\\n"
            f"  username={LOG_USER} \\\n  password={escaped(password)};\n"
        )

    def bearer(_: str, password: str) -> str:
        package = "org.apache.kafka.common.security.oauthbearer"
        return (
            f"sasl.oauthbearer.token.endpoint.url={issuer.token_url}\n"
            f"sasl.login.callback.handler.class={package}.secured.OAuthBearerLoginCallbackHandler\n"
            f"sasl.jaas.config={package}.OAuthBearerLoginModule required \\\n"
            f"  clientId={LOG_USER} clientSecret={escaped(password)} \\\n"
            f'  ssl.truststore.location="{authority.trusted}";\n'
        )

    def ticket(_: str, password: str) -> str:
        options = kdc.options("alice" if password == LOG_PASSWORD else "nobody")
        return (
            f"sasl.kerberos.service.name={SERVICE}\njava.security.krb5.conf={kdc.krb5_conf}\n"
            f"sasl.jaas.config={login_module('Krb5LoginModule', options)}\n"
        )

    return client


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(one) for one in arguments])
    return int(left.value.code or 0)


@pytest.mark.parametrize("mechanism", [*MODULES, TOKENS, TICKETS])
def test_a_log_is_copied_there_followed_and_decided_again(
    cluster: LogCluster, client: Client, tmp_path: Path, mechanism: str, capsys
) -> None:
    events = long_log(11, plausible=True)
    with EmbeddedLogWriter(tmp_path / "data" / "events") as writer:
        writer.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in events])
    topic = KafkaTopic(cluster.bootstrap_server, mechanism.lower(), str(client(mechanism)))
    assert run("log", "create", topic, "--replication-factor", 1) == 0
    assert run("log", "copy", tmp_path / "data", topic) == 0
    with KafkaTail(topic, 10_000) as tail:
        assert tail.end_offset() == len(events)
    assert run("replay", topic, "--local", "--out", tmp_path / "out") == 0
    digest = Digest()
    digest.update(fold_log(events, 1)[1])
    assert f"digest {digest.hexdigest()}" in capsys.readouterr().out


def test_decisions_are_published_there(cluster: LogCluster, client: Client, tmp_path: Path) -> None:
    topic = KafkaTopic(cluster.bootstrap_server, "decisions", str(client("PLAIN")))
    assert run("log", "create", topic, "--replication-factor", 1) == 0
    with EmbeddedLogWriter(tmp_path / "decisions") as decisions:
        decisions.append([NewRecord("change_partitions", "2:0", b"{}", 1)])
        with published(tmp_path / "decisions", str(topic), 10**9), KafkaLogReader(topic) as reader:
            wait_for("the copy", lambda: reader.end_offset() == 1)


@pytest.mark.parametrize("mechanism", MODULES)
def test_who_is_not_let_in_is_told(cluster: LogCluster, client: Client, mechanism: str) -> None:
    topic = KafkaTopic(cluster.bootstrap_server, "any", str(client(mechanism, "wrong")))
    # kafka-python may see that the broker hung up before it reads why.
    with pytest.raises(LogUnavailable, match=r"Authentication failed|socket disconnected"):
        KafkaLogReader(topic, timeout_ms=5_000)


def test_a_log_is_written_for_longer_than_tokens_last(cluster: LogCluster, client: Client) -> None:
    topic = KafkaTopic(cluster.bootstrap_server, "long", str(client(TOKENS)))
    assert run("log", "create", topic, "--replication-factor", 1) == 0
    ends_s, written = time.monotonic() + 2 * LIFE_S, 0
    with KafkaLogWriter(topic) as writer, KafkaTail(topic, 10_000) as tail:
        while time.monotonic() < ends_s:
            assert writer.append([NewRecord("k", "", b"", 1)]) == range(written, written + 1)
            written += 1
            wait_for("the record", lambda: tail.end_offset() == written)  # noqa: B023
            time.sleep(0.2)


def test_an_issuer_that_gives_no_token_is_named(
    cluster: LogCluster, client: Client, issuer: TokenIssuer
) -> None:
    topic = KafkaTopic(cluster.bootstrap_server, "any", str(client(TOKENS, "wrong")))
    with pytest.raises(LogUnavailable, match=f"{issuer.token_url} answered 401"):
        KafkaLogReader(topic, timeout_ms=5_000)


def test_who_gets_no_ticket_is_told_why(cluster: LogCluster, client: Client) -> None:
    topic = KafkaTopic(cluster.bootstrap_server, "any", str(client(TICKETS, "wrong")))
    with pytest.raises(LogUnavailable, match="Unable to obtain password from user"):
        KafkaLogReader(topic, timeout_ms=5_000)


def test_whom_it_does_not_trust_is_told(
    cluster: LogCluster, client: Client, tmp_path: Path
) -> None:
    file = client("PLAIN")
    stranger = Authority(tmp_path / "stranger")
    lines = file.read_text().splitlines()
    lines[3] = f"ssl.truststore.location={stranger.trusted}"
    file.write_text("\n".join(lines))
    with pytest.raises(LogUnavailable, match="certificate verify failed"):
        KafkaLogReader(KafkaTopic(cluster.bootstrap_server, "any", str(file)), timeout_ms=5_000)


def test_without_a_configuration_it_does_not_answer(cluster: LogCluster) -> None:
    with pytest.raises(LogUnavailable, match="does not answer as it should"):
        KafkaLogReader(cluster.topic("any"), timeout_ms=2_000)
