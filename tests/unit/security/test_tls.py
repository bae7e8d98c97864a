"""What TLS is made of: which settings are refused, and in which words."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from streaming.errors import ConfigurationError
from streaming.security.protocols import configured_listeners, spoken_protocols
from streaming.security.tls import check_tls, client_context, server_context, zookeeper_context
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.wire.endpoints import SecurityProtocol
from tests.fixtures.certificates import Authority

PLAINTEXT, SSL = SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL


def settings(*overrides: str) -> Settings:
    return load_settings(overrides=overrides, environment={})


def test_without_a_key_only_plaintext_is_spoken() -> None:
    given = settings()
    assert spoken_protocols(given) == {PLAINTEXT}
    assert client_context(given) is None
    assert server_context(given) is None


def test_with_a_key_tls_is_spoken_too(authority: Authority) -> None:
    given = settings(
        f"ssl.keystore.location={authority.keystore('ours')}",
        f"ssl.truststore.location={authority.trusted}",
    )
    check_tls(given)
    assert spoken_protocols(given) == {PLAINTEXT, SSL}


def test_a_path_may_begin_at_home(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    key = authority.keystore("at-home")
    monkeypatch.setenv("HOME", str(key.parent))
    given = settings("ssl.keystore.location=~/at-home.pem")
    assert given.ssl_keystore_location == str(key)


def _without_key(authority: Authority) -> Path:
    return authority.trusted


def _of_two(authority: Authority) -> Path:
    """The key of one with the certificate of another."""
    one, other = (authority.keystore(name).read_bytes() for name in ("one", "other"))
    key, _, _ = one.partition(b"-----BEGIN CERTIFICATE-----")
    _, begin, certificates = other.partition(b"-----BEGIN CERTIFICATE-----")
    path = authority.trusted.with_name("mixed.pem")
    path.write_bytes(key + begin + certificates)
    return path


UNUSABLE = {
    "missing": (lambda authority: Path("/nowhere/key.pem"), "No such file or directory"),
    "a folder": (lambda authority: authority.trusted.parent, "Is a directory"),
    "without a key": (_without_key, "PEM"),
    "two halves": (_of_two, "KEY_VALUES_MISMATCH"),
    "encrypted": (
        lambda authority: authority.keystore("locked", password="secret"),
        "its key is encrypted",
    ),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_key_that_cannot_be_used_is_named(authority: Authority, name: str) -> None:
    path, reason = UNUSABLE[name][0](authority), UNUSABLE[name][1]
    with pytest.raises(ConfigurationError) as caught:
        check_tls(settings(f"ssl.keystore.location={path}"))
    said = str(caught.value)
    assert said.startswith(f"ssl.keystore.location = {str(path)!r} cannot be used (")
    assert reason in said
    assert "allowed: a PEM file with an unencrypted private key" in said


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("a stranger's", "unable to get local issuer certificate"),
        ("for elsewhere", "not valid for '127.0.0.1'"),
        ("expired", "certificate has expired"),
    ],
)
def test_a_key_with_which_nobody_would_speak_to_us_is_refused(
    authority: Authority, tmp_path: Path, why: str, reason: str
) -> None:
    key = {
        "a stranger's": lambda: Authority(tmp_path).keystore("ours"),
        "for elsewhere": lambda: authority.keystore("elsewhere", "broker-1.example"),
        "expired": lambda: authority.keystore("expired", ends=datetime(2001, 1, 1, tzinfo=UTC)),
    }[why]()
    given = [f"ssl.keystore.location={key}", f"ssl.truststore.location={authority.trusted}"]
    with pytest.raises(ConfigurationError) as caught:
        check_tls(settings(*given))
    assert reason in str(caught.value)
    assert str(caught.value).startswith(f"ssl.keystore.location = {str(key)!r}: who trusts those")
    if why == "for elsewhere":
        check_tls(settings(*given, "gateway.advertised.host=broker-1.example"))
        check_tls(settings(*given, "ssl.endpoint.identification.algorithm="))


@pytest.mark.parametrize("content", [b"", b"no certificate", b"\x00\xff"])
def test_trust_in_nobody_is_refused(authority: Authority, tmp_path: Path, content: bytes) -> None:
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(content)
    key = authority.keystore("ours")
    with pytest.raises(ConfigurationError) as caught:
        check_tls(settings(f"ssl.keystore.location={key}", f"ssl.truststore.location={trusted}"))
    assert str(caught.value).startswith(f"ssl.truststore.location = {str(trusted)!r} cannot be us")


@pytest.mark.parametrize(
    "override", ["ssl.truststore.location=/trusted.pem", "listener.security.protocol.map=C:SSL"]
)
def test_settings_of_tls_without_a_key_are_refused(override: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        settings(override)
    assert str(caught.value).startswith(f"{override.partition('=')[0]} is about TLS, for which")
    assert "set ssl.keystore.location" in str(caught.value)


@pytest.mark.parametrize(
    "value", ["C", "C:TLS", "C:SASL", "C:SSL,", "C:SSL, D:SSL", "C:SSL,C:PLAINTEXT"]
)
def test_a_map_of_listeners_has_protocols_that_are_spoken(value: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        settings(f"listener.security.protocol.map={value}")
    assert "allowed is LISTENER:PROTOCOL" in str(caught.value)


def test_what_is_spoken_on_a_listener_is_in_the_map_or_in_its_name(authority: Authority) -> None:
    given = settings(
        f"ssl.keystore.location={authority.keystore('ours')}",
        "gateway.listeners=CLIENT,SSL,INTERNAL,PLAINTEXT,EDGE",
        "listener.security.protocol.map=INTERNAL:SSL,EDGE:PLAINTEXT,OTHER:SSL",
    )
    assert configured_listeners(given) == {
        "CLIENT": PLAINTEXT,
        "SSL": SSL,
        "INTERNAL": SSL,
        "PLAINTEXT": PLAINTEXT,
        "EDGE": PLAINTEXT,
    }


def test_who_is_trusted_need_not_be_at_the_root(authority: Authority, tmp_path: Path) -> None:
    below = authority.below(tmp_path)
    key = f"ssl.keystore.location={below.keystore('node')}"
    for trusted in (below.trusted, authority.trusted):
        check_tls(settings(key, f"ssl.truststore.location={trusted}"))
    strange = Authority(tmp_path / "strange").trusted
    with pytest.raises(ConfigurationError, match="unable to get"):
        check_tls(settings(key, f"ssl.truststore.location={strange}"))


@pytest.mark.parametrize("host", [".example", "a..b", f"{'x' * 64}.example"])
def test_a_host_that_cannot_be_is_refused(authority: Authority, host: str) -> None:
    given = [
        f"ssl.keystore.location={authority.keystore('node')}",
        f"ssl.truststore.location={authority.trusted}",
        f"gateway.advertised.host={host}",
    ]
    with pytest.raises(ConfigurationError, match=r"at \S+ \(.+\); allowed: a certificate"):
        check_tls(settings(*given))


@pytest.mark.parametrize("key", ["keystore", "truststore"])
def test_files_of_tls_with_zookeeper_are_named(authority: Authority, key: str) -> None:
    given = ["zookeeper.ssl.client.enable=true", f"zookeeper.ssl.{key}.location=/nowhere.pem"]
    with pytest.raises(ConfigurationError) as caught:
        check_tls(settings(*given))
    assert str(caught.value).startswith(f"zookeeper.ssl.{key}.location = '/nowhere.pem' cannot be")
    with pytest.raises(ConfigurationError, match=r"set zookeeper\.ssl\.client\.enable to true"):
        settings(given[1])


def test_zookeeper_need_not_know_who_connects(authority: Authority) -> None:
    assert zookeeper_context(settings()) is None
    trusted = f"zookeeper.ssl.truststore.location={authority.trusted}"
    given = ["zookeeper.ssl.client.enable=true", trusted]
    check_tls(settings(*given))
    context = zookeeper_context(settings(*given))
    assert context is not None and context.current().check_hostname
    left_open = settings(*given, "zookeeper.ssl.endpoint.identification.algorithm=")
    context = zookeeper_context(left_open)
    assert context is not None and not context.current().check_hostname
    with pytest.raises(ConfigurationError, match=r"zookeeper\.set\.acl = true lets nobody"):
        settings(*given, "zookeeper.set.acl=true")
