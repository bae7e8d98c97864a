"""Login classes of the brokers' own, in a JVM, by which this node tells a real broker who it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from streaming.embedded.broker import KafkaBroker
from streaming.embedded.java_class import shared_jvm
from streaming.embedded.ports import LOOPBACK
from streaming.errors import ConfigurationError
from streaming.security.connector import Connector
from streaming.security.java_own_login import NotLoggedIn, OwnLogin, check_own_login
from streaming.security.sasl_client import NotAuthenticated
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.wire.exchange import CLIENT_ID
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from tests.fixtures.jars_of_tests import LOGGED_IN, LOGIN_HANDLER, LOGIN_MODULE, jars_of_tests
from tests.fixtures.token_issuer import TokenIssuer

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

_SECURITY = "org.apache.kafka.common.security"
_BEARER = f"{_SECURITY}.oauthbearer"
CLIENT, SECRET = "helmstream", "hush"
WAIT_S = 60


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return jars_of_tests(tmp_path_factory.mktemp("classes") / "jars")


@pytest.fixture(scope="module")
def issuer() -> Iterator[TokenIssuer]:
    with TokenIssuer({CLIENT: SECRET}) as issuer:
        yield issuer


@pytest.fixture(scope="module")
def broker(
    shared_zookeeper: str, issuer: TokenIssuer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaBroker]:
    user, password = LOGGED_IN
    config = {
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT",
        "listener.name.client.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.client.plain.sasl.jaas.config": f"{_SECURITY}.plain.PlainLoginModule"
        f' required user_{user}="{password}";',
        "listener.name.client.oauthbearer.sasl.jaas.config": f"{_BEARER}.OAuthBearerLoginModule"
        " required unsecuredLoginStringClaim_sub=itself;",
        "listener.name.client.oauthbearer.sasl.server.callback.handler.class": f"{_BEARER}.secured"
        ".OAuthBearerValidatorCallbackHandler",
        "listener.name.client.sasl.oauthbearer.jwks.endpoint.url": issuer.keys_url,
    }
    zookeeper = f"{shared_zookeeper}/own-login"
    folder = tmp_path_factory.mktemp("broker")
    with KafkaBroker(1, zookeeper, folder, config=config) as broker:
        yield broker


def settings(
    folder: Path, jars: Path, mechanism: str, of_a_broker: Mapping[str, str], *more: str
) -> Settings:
    """Those of a node whose brokers have these properties on listener CLIENT."""
    file = folder / "server.properties"
    lines = [f"listener.name.client.{key}={value}\n" for key, value in of_a_broker.items()]
    file.write_text("".join(lines))
    given = [
        "inter.broker.listener.name=CLIENT",
        f"sasl.mechanism.inter.broker.protocol={mechanism}",
        f"sasl.login.class.path={jars}/*",
        f"sasl.login.config={file}",
        *more,
    ]
    return load_settings(overrides=given, environment={})


def by_handler(folder: Path, jars: Path, module: str = LOGIN_MODULE) -> Settings:
    properties = {
        "plain.sasl.jaas.config": f"{module} required;",
        "plain.sasl.login.callback.handler.class": LOGIN_HANDLER,
    }
    return settings(folder, jars, "PLAIN", properties)


def by_token(folder: Path, jars: Path, url: str, secret: str = SECRET) -> Settings:
    module = f"{_BEARER}.OAuthBearerLoginModule required"
    properties = {
        "oauthbearer.sasl.jaas.config": f'{module} clientId="{CLIENT}" clientSecret="{secret}"'
        ' extension_traceId="17";',
        "oauthbearer.sasl.login.callback.handler.class": f"{_BEARER}.secured"
        ".OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": url,
    }
    keys = "sasl.oauthbearer.jwks.endpoint.url=http://issuer/keys"
    return settings(folder, jars, "OAUTHBEARER", properties, keys)


async def nodes(connector: Connector, broker: KafkaBroker) -> list[int]:
    """Log in at a broker, and ask it who is there."""
    protocol, port = SecurityProtocol.SASL_PLAINTEXT, broker.client_port
    end = Endpoint(listener="CLIENT", host=LOOPBACK, port=port, security_protocol=protocol)
    connection = await connector.open(end)
    try:
        body = {"topics": []}
        answer = await connection.ask(encode_request(ApiKey.METADATA, 1, 0, CLIENT_ID, body))
        told = decode_response(ApiKey.METADATA, 1, answer)[1]
        return [one["node_id"] for one in told["brokers"]]
    finally:
        connection.abort()


def logged_in(settings: Settings, broker: KafkaBroker) -> list[int]:
    return asyncio.run(asyncio.wait_for(nodes(Connector.of(settings), broker), WAIT_S))


def test_a_login_module_and_its_handler_say_who_we_are(
    broker: KafkaBroker, jars: Path, tmp_path: Path
) -> None:
    given = by_handler(tmp_path, jars)
    check_own_login(given)
    assert logged_in(given, broker) == [1]


def test_a_jvm_that_is_killed_is_started_again(
    broker: KafkaBroker, jars: Path, tmp_path: Path
) -> None:
    given = by_handler(tmp_path, jars)
    assert logged_in(given, broker) == [1]
    process = shared_jvm(given.sasl_login_class_path, given.jvm_options)._process
    assert process is not None
    process.kill()
    process.wait(WAIT_S)
    assert logged_in(given, broker) == [1]


def test_a_token_is_said_with_its_extensions(
    broker: KafkaBroker, jars: Path, issuer: TokenIssuer, tmp_path: Path
) -> None:
    given = by_token(tmp_path, jars, issuer.token_url)
    check_own_login(given)
    assert logged_in(given, broker) == [1]
    said = next(OwnLogin(given, "OAUTHBEARER").begin("")).decode()
    assert said.startswith("n,,\x01auth=Bearer ey")
    assert said.endswith("\x01traceId=17\x01\x01")


def test_who_is_not_logged_in_is_told_why(
    broker: KafkaBroker, jars: Path, issuer: TokenIssuer, tmp_path: Path
) -> None:
    given = by_token(tmp_path, jars, issuer.token_url, secret="wrong")
    check_own_login(given)  # the issuer is not asked: it may be back later
    with pytest.raises(NotLoggedIn, match="401"):
        logged_in(given, broker)


def test_a_login_that_says_nobody_is_told(broker: KafkaBroker, jars: Path, tmp_path: Path) -> None:
    given = by_handler(tmp_path, jars, f"{_SECURITY}.plain.PlainLoginModule")  # asks no handler
    with pytest.raises(NotLoggedIn, match="the login module for PLAIN left no name or no password"):
        logged_in(given, broker)


def test_whom_the_broker_does_not_know_is_told_so(
    broker: KafkaBroker, jars: Path, tmp_path: Path
) -> None:
    module = f"{_SECURITY}.plain.PlainLoginModule"
    with pytest.raises(NotAuthenticated, match="refused with PLAIN as user 'whom sasl"):
        properties = {"plain.sasl.jaas.config": f"{module} required username=eve password=x;"}
        logged_in(settings(tmp_path, jars, "PLAIN", properties), broker)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("plain.sasl.login.callback.handler.class", "com.example.Missing", "com.example.Missing"),
        ("plain.sasl.jaas.config", "com.example.Module required;", "com.example.Module"),
        ("sasl.jaas.config", "nonsense", "cannot be used"),
    ],
)
def test_classes_that_cannot_be_used_are_refused_with_their_reason(
    jars: Path, tmp_path: Path, key: str, value: str, said: str
) -> None:
    given = settings(tmp_path, jars, "PLAIN", {key: value})
    with pytest.raises(ConfigurationError) as refused:
        check_own_login(given)
    assert said in str(refused.value)
    assert f"sasl.login.config = '{given.sasl_login_config}'" in str(refused.value)
    assert f"sasl.login.class.path = '{jars}/*'" in str(refused.value)
