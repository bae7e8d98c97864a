"""Keys and certificates that are replaced while TLS is spoken."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from streaming.errors import ConfigurationError
from streaming.keyfiles import renewed
from streaming.keyfiles.renewed import RenewedContext, https_context
from streaming.process.wall_clock import wall_clock_ms
from streaming.security.connector import Connector
from tests.fixtures.certificates import Authority
from tests.unit.gateway.support import Rig
from tests.unit.security.support import Files, ask_metadata, connecting, metadata, secured

DAY_MS = 86_400_000
REFUSED = (ssl.SSLError, ConnectionError, EOFError)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are looked at before each connection."""
    monkeypatch.setattr(renewed, "_LOOK_EVERY_S", 0.0)


@pytest.fixture
def pass_s(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets time pass."""
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])

    def wait(seconds: float) -> None:
        now_s[0] += seconds

    return wait


def replaced(file: Path, content: bytes) -> None:
    """As tools that renew certificates do it."""
    beside = file.with_suffix(".new")
    beside.write_bytes(content)
    beside.replace(file)


def test_files_that_stay_are_read_once(tmp_path: Path, pass_s: Callable[[float], None]) -> None:
    made: list[ssl.SSLContext] = []

    def make() -> ssl.SSLContext:
        made.append(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        return made[-1]

    file = tmp_path / "key.pem"
    file.write_bytes(b"1")
    kept = RenewedContext(make, ["", str(file)])
    for _ in range(3):
        pass_s(renewed._LOOK_EVERY_S)
        assert kept.current() is made[0]
    replaced(file, b"2")
    assert kept.current() is made[0], "a busy gateway does not look at files all the time"
    pass_s(renewed._LOOK_EVERY_S)
    assert kept.current() is made[1] is kept.current()
    assert len(made) == 2 and not kept.outdated


@pytest.mark.parametrize("gone", [True, False])
def test_what_cannot_be_used_leaves_it_as_it_was_until_it_can(
    gone: bool, tmp_path: Path, at_once: None, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    kept = https_context("ssl.truststore.location", str(authority.trusted))
    before, whole = kept.current(), authority.trusted.read_bytes()
    if gone:
        authority.trusted.unlink()
    else:
        replaced(authority.trusted, whole[: len(whole) // 2])
    with caplog.at_level(logging.INFO):
        assert [kept.current() for _ in range(3)] == [before] * 3
        assert kept.outdated
        replaced(authority.trusted, whole)
        assert kept.current() is not before and not kept.outdated
    refused, again = (one.getMessage() for one in caplog.records)
    assert refused.startswith(f"ssl.truststore.location = '{authority.trusted}' cannot be used")
    assert refused.endswith("; until then TLS is as before")
    assert again == f"TLS: read {authority.trusted} again"


def test_a_file_that_is_moved_away_and_back_is_the_one_it_was(
    tmp_path: Path, at_once: None
) -> None:
    authority = Authority(tmp_path)
    kept = https_context("ssl.truststore.location", str(authority.trusted))
    before, away = kept.current(), tmp_path / "away.pem"
    authority.trusted.rename(away)
    assert kept.current() is before and kept.outdated
    away.rename(authority.trusted)
    assert kept.current() is before and not kept.outdated


def test_the_first_time_it_has_to_be_of_use(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be used"):
        https_context("ssl.truststore.location", str(tmp_path / "none.pem"))


def client_of(authority: Authority) -> Connector:
    return connecting(authority, authority.keystore("client"))


async def comes_in(rig: Rig, who: Connector) -> bool:
    (end,) = rig.gateway.endpoints()
    try:
        await metadata(who, end)
    except REFUSED:
        return False
    return True


def test_all_certificates_are_replaced_under_a_gateway_that_serves(
    tmp_path: Path, at_once: None
) -> None:
    """Those of the authority too: who has only the old ones is refused then."""
    files = Files(tmp_path)
    given = files.settings()

    async def scenario(rig: Rig) -> None:
        old, new = client_of(files.authority), client_of(files.stranger)
        ours = Connector.of(given)
        assert [await comes_in(rig, one) for one in (old, new, ours)] == [True, False, True]
        (end,) = rig.gateway.endpoints()
        opened = await old.open(end)
        replaced(files.authority.trusted, files.stranger.trusted.read_bytes())
        replaced(Path(given.ssl_keystore_location), files.stranger.keystore("us").read_bytes())
        assert [await comes_in(rig, one) for one in (old, new, ours)] == [False, True, True]
        assert rig.gateway.counters["outdated_tls"] == 0
        await ask_metadata(opened)
        opened.abort()

    secured(scenario, given)


def test_a_certificate_that_nobody_would_take_replaces_none(
    tmp_path: Path, at_once: None, caplog: pytest.LogCaptureFixture
) -> None:
    files = Files(tmp_path)
    given = files.settings()
    expired = files.authority.keystore("late", ends=datetime(2021, 1, 1, tzinfo=UTC))

    async def scenario(rig: Rig) -> None:
        client = client_of(files.authority)
        ends_ms = rig.gateway.certificate_ends_ms()
        assert ends_ms is not None and ends_ms > wall_clock_ms()
        replaced(Path(given.ssl_keystore_location), expired.read_bytes())
        assert [await comes_in(rig, client) for _ in range(3)] == [True] * 3
        assert rig.gateway.counters["outdated_tls"] == 3
        assert rig.gateway.certificate_ends_ms() == ends_ms
        soon = files.authority.keystore("soon", ends=datetime.now(UTC) + timedelta(days=3))
        replaced(Path(given.ssl_keystore_location), soon.read_bytes())
        found_ms = rig.gateway.certificate_ends_ms()
        assert found_ms is not None and 0 < found_ms - wall_clock_ms() <= 3 * DAY_MS

    secured(scenario, given)
    (said,) = (one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR)
    assert "would not speak to this node at 127.0.0.1 (certificate has expired)" in said
