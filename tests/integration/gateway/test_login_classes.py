"""A callback handler of Kafka's own tests, in a JVM: who comes by PLAIN."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from streaming.errors import ConfigurationError
from streaming.front.login_classes import check_login_classes, java_logins
from streaming.security.identity import Identity, Refused, Undecided
from streaming.security.java_logins import JavaLogins
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from tests.fixtures.jaas import jaas_file
from tests.fixtures.jars_of_tests import LOGINS, USERS, jars_of_tests
from tests.fixtures.token_issuer import TokenIssuer

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

HANDLER = "plain.sasl.server.callback.handler.class"
VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured"
    ".OAuthBearerUnsecuredValidatorCallbackHandler"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("login-classes")
    jars_of_tests(folder / "jars")
    jaas_file(folder / "jaas", {"KafkaServer": {"PlainLoginModule": {"username": "u"}}})
    return folder


def settings(folder: Path, *overrides: str, name: str = LOGINS) -> Settings:
    given = [
        f"{HANDLER}={name}",
        f"sasl.server.callback.handler.class.path={folder}/jars/*",
        f"java.security.auth.login.config={folder}/jaas",
        "sasl.enabled.mechanisms=PLAIN",
        "sasl.mechanism.inter.broker.protocol=PLAIN",
        "inter.broker.listener.name=INTERNAL",
        *overrides,
    ]
    return load_settings(overrides=given, environment={})


@pytest.fixture
def logins(folder: Path) -> JavaLogins:
    return java_logins(settings(folder), "INTERNAL")["PLAIN"]


def come(logins: JavaLogins, user: str, password: str, acting_for: str = "") -> str:
    server = logins.server()
    token = "\0".join((acting_for, user, password)).encode()
    assert asyncio.run(server.respond(token)) == b""
    assert server.identity is not None and server.identity.end_ms is None
    return server.identity.principal


def test_who_the_handler_knows_comes_in(logins: JavaLogins) -> None:
    for user, password in USERS.items():
        assert come(logins, user, password) == f"User:{user}"
        assert come(logins, user, password, user) == f"User:{user}"


def test_a_session_lasts_as_long_as_the_token_that_a_handler_takes(folder: Path) -> None:
    jaas = jaas_file(folder / "tokens.jaas", {"KafkaServer": {"OAuthBearerLoginModule": {}}})
    given = [
        f"oauthbearer.{HANDLER.partition('.')[2]}={UNSECURED}",
        "sasl.enabled.mechanisms=PLAIN,OAUTHBEARER",
        f"java.security.auth.login.config={jaas}",
    ]
    logins = java_logins(settings(folder, *given), "INTERNAL")["OAUTHBEARER"]
    end_s = int(time.time()) + 600
    token = jwt.encode({"sub": "alice", "iat": end_s - 700, "exp": end_s}, None, "none")
    server = logins.server()
    asyncio.run(server.respond(f"n,,\x01auth=Bearer {token}\x01\x01".encode()))
    assert server.identity == Identity("User:alice", end_ms=end_s * 1000)
    ended = jwt.encode({"sub": "alice", "iat": 1, "exp": 2}, None, "none")
    server = logins.server()
    asyncio.run(server.respond(f"n,,\x01auth=Bearer {ended}\x01\x01".encode()))
    with pytest.raises(Refused, match="invalid_token"):  # which the client hears, and agrees
        asyncio.run(server.respond(b"\x01"))


@pytest.mark.parametrize(
    ("user", "password", "acting_for", "reason"),
    [
        ("plain-user", "wrong", "", "Invalid username or password"),
        ("plain-user", "", "", "password not specified"),
        ("nobody", "secret", "", "could not be verified"),
        ("plain-user", USERS["plain-user"], "plain-admin", "different from username"),
        ("plain-user", f"a\0{USERS['plain-user']}", "", "expected 3 tokens"),
    ],
)
def test_nobody_else_does(
    logins: JavaLogins, user: str, password: str, acting_for: str, reason: str
) -> None:
    with pytest.raises(Refused, match=reason):
        come(logins, user, password, acting_for)


def test_a_jvm_that_is_gone_is_started_again(logins: JavaLogins) -> None:
    ((user, password), *_) = USERS.items()
    assert come(logins, user, password)
    process = logins._jvm._process
    assert process is not None
    process.kill()
    process.wait(30)
    assert come(logins, user, password)


def test_without_a_jvm_nothing_is_decided(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    elsewhere = f"sasl.server.callback.handler.class.path={folder}/jars/*:{tmp_path}"
    logins = java_logins(settings(folder, elsewhere), "INTERNAL")["PLAIN"]
    with pytest.raises(Undecided, match="no bin/java in it"):
        come(logins, "plain-user", "any")


def test_a_handler_is_configured_as_in_a_broker(folder: Path, tmp_path: Path) -> None:
    """Kafka's own for tokens: its numbers are numbers, and those of the listener count."""
    jaas = jaas_file(folder / "validated.jaas", {"KafkaServer": {"OAuthBearerLoginModule": {}}})
    file = tmp_path / "server.properties"
    with TokenIssuer() as issuer:
        file.write_text(
            "sasl.oauthbearer.jwks.endpoint.url=http://127.0.0.1:1/keys\n"
            f"listener.name.internal.sasl.oauthbearer.jwks.endpoint.url={issuer.keys_url}\n"
            "sasl.oauthbearer.clock.skew.seconds=20\n"
        )
        given = [
            f"oauthbearer.{HANDLER.partition('.')[2]}={VALIDATOR}",
            "sasl.enabled.mechanisms=PLAIN,OAUTHBEARER",
            f"java.security.auth.login.config={jaas}",
            f"sasl.server.callback.handler.config={file}",
        ]
        logins = java_logins(settings(folder, *given), "INTERNAL")["OAUTHBEARER"]
        just_ended = int(time.time()) - 5
        passed: dict[str, Any] = {"exp": just_ended, "iat": just_ended - 600}
        for ends in ({}, passed):
            server = logins.server()
            said = f"n,,\x01auth=Bearer {issuer.token('alice', **ends)}\x01\x01"
            assert asyncio.run(server.respond(said.encode())) == b""
            assert server.identity is not None and server.identity.principal == "User:alice"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no.such.Handler", r"\(no\.such\.Handler\)"),
        (
            "java.lang.String",
            r"\(it is no org\.apache\..*\.AuthenticateCallbackHandler",
        ),
    ],
)
def test_a_class_that_is_no_handler_is_refused_before_the_start(
    folder: Path, name: str, reason: str
) -> None:
    check_login_classes(settings(folder))
    with pytest.raises(ConfigurationError, match=rf"^plain\.sasl\..* = {name} cannot be.*{reason}"):
        check_login_classes(settings(folder, name=name))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([f"{HANDLER}=a.B"], "a.B is about PLAIN, by which nobody may come"),
        (["sasl.server.callback.handler.class.path=/a"], "class.path is about callback handlers"),
        (["sasl.server.callback.handler.config=/a"], "config is about callback handlers"),
    ],
)
def test_settings_of_handlers_go_together(given: list[str], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        load_settings(overrides=given, environment={})


def test_a_handler_needs_a_class_path(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"needs sasl\..*\.handler\.class\.path: allowed"):
        settings(folder, "sasl.server.callback.handler.class.path=")
