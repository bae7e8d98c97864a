"""Who has a ticket of a real centre is let in: GSSAPI, both sides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from streaming.gateway.server import Listener
from streaming.security.connector import Connector
from streaming.security.kerberos.names import name_rules
from streaming.security.kerberos.server import GssServer
from streaming.security.ourselves import Credentials
from streaming.security.sasl_client import NotAuthenticated
from streaming.security.sasl_server import Sasl
from streaming.tickets.client import kerberos_conversation
from streaming.tickets.jgss import GssFailed, Jgss
from streaming.wire.apis import ApiKey
from tests.fixtures.key_distribution import SERVICE, Kdc
from tests.unit.gateway.support import Rig, with_gateway
from tests.unit.security.support import metadata

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

NAMED = "NAMED"
GSSAPI = "GSSAPI"


@pytest.fixture(scope="module")
def jgss(kdc: Kdc) -> Iterator[Callable[[str], Jgss]]:
    """What has the key of somebody, by name."""
    begun: dict[str, Jgss] = {}

    def of(name: str) -> Jgss:
        return begun.setdefault(name, Jgss(kdc.options(name), str(kdc.krb5_conf)))

    yield of
    for one in begun.values():
        one.close()


async def nobody(mechanism: str, user: str) -> None:
    return None


def with_tickets(
    key: Jgss, scenario: Callable[[Rig], Awaitable[None]], rules: str = "DEFAULT"
) -> None:
    """Run a scenario against a gateway with a listener where tickets for a key are taken."""
    server = partial(GssServer, key, name_rules(rules))
    sasl = Sasl((GSSAPI,), {}, nobody, others={GSSAPI: server})
    with_gateway(scenario, listeners=[Listener(NAMED, "127.0.0.1", 0, sasl=sasl)])


async def seen_by(rig: Rig, who: Jgss, service: str = SERVICE) -> int:
    """Who somebody sees as the controller."""
    (end,) = rig.gateway.endpoints()
    ours = Credentials(GSSAPI, "who", begin=partial(kerberos_conversation, who, service))
    return int((await metadata(Connector(ours=ours), end))["controller_id"])


def test_who_has_a_ticket_is_answered(jgss: Callable[[str], Jgss]) -> None:
    async def scenario(rig: Rig) -> None:
        for name in ("alice", "bob/admin", "kafka/localhost"):
            assert await seen_by(rig, jgss(name)) == 1000
        await asyncio.gather(*(seen_by(rig, jgss("alice")) for _ in range(20)))
        assert rig.gateway.counters["closed_unauthenticated"] == 0

    with_tickets(jgss("kafka/localhost"), scenario)


def test_a_ticket_for_another_host_is_refused_and_told_of(
    jgss: Callable[[str], Jgss], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: Rig) -> None:
        with pytest.raises(NotAuthenticated, match="invalid credentials with GSSAPI"):
            await seen_by(rig, jgss("alice"))
        await rig.counted("closed_unauthenticated", 1)

    with_tickets(jgss("kafka/other"), scenario)
    assert "not authenticated by GSSAPI: the ticket is not good: " in caplog.text


def test_who_no_rule_is_about_is_refused(
    jgss: Callable[[str], Jgss], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: Rig) -> None:
        with pytest.raises(NotAuthenticated):
            await seen_by(rig, jgss("bob/admin"))
        assert await seen_by(rig, jgss("alice")) == 1000

    with_tickets(jgss("kafka/localhost"), scenario, "RULE:[1:$1]")
    assert "is about 'bob/admin@EXAMPLE.COM'" in caplog.text


def test_tokens_that_are_none_are_refused(jgss: Callable[[str], Jgss]) -> None:
    async def scenario(rig: Rig) -> None:
        for count, token in enumerate((b"", b"\0", b"\x60\x03\x06\x01\0", b"x" * 10_000), 1):
            client = await rig.client(NAMED)
            await client.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": GSSAPI})
            said = await client.ask(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": token})
            assert said["error_code"] == 58  # SASL_AUTHENTICATION_FAILED
            await client.wait_closed()
            await rig.counted("closed_unauthenticated", count)

    with_tickets(jgss("kafka/localhost"), scenario)


def test_a_jvm_that_is_gone_is_started_again(kdc: Kdc, jgss: Callable[[str], Jgss]) -> None:
    mortal = Jgss(kdc.options("kafka/localhost"), str(kdc.krb5_conf))

    async def scenario(rig: Rig) -> None:
        assert await seen_by(rig, jgss("alice")) == 1000
        process = mortal.jvm._process
        assert process is not None
        process.kill()
        process.wait(30)
        assert await seen_by(rig, jgss("alice")) == 1000

    with_tickets(mortal, scenario)
    mortal.close()


@pytest.mark.parametrize(
    ("name", "service", "reason"),
    [
        ("nobody", SERVICE, "Unable to obtain password from user"),
        ("alice", "unknown", "Server not found in Kerberos database"),
    ],
)
def test_a_ticket_that_cannot_be_had_is_told_of(
    jgss: Callable[[str], Jgss], name: str, service: str, reason: str
) -> None:
    async def scenario(rig: Rig) -> None:
        with pytest.raises(GssFailed, match=reason):
            await seen_by(rig, jgss(name), service)

    with_tickets(jgss("kafka/localhost"), scenario)


def test_a_centre_that_is_away_is_told_of(kdc: Kdc, tmp_path: Path) -> None:
    conf = tmp_path / "krb5.conf"
    conf.write_text(kdc.conf_of_nobody())
    away = Jgss(kdc.options("alice"), str(conf))
    with pytest.raises(GssFailed, match="refused"):
        next(kerberos_conversation(away, SERVICE, "localhost"))
    away.close()
