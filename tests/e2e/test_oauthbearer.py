"""Three real brokers that know each other, this node and their clients by tokens of an issuer, most
of which end while the tests run.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.e2e.group_clients import (
    TOPIC,
    JavaClient,
    Member,
    PythonClient,
    RdClient,
    producing,
)
from tests.e2e.real_cluster import RealCluster
from tests.e2e.sasl_cluster import sasl_cluster
from tests.e2e.securing import (
    SECURED,
    brokers,
    create,
    drive_from_the_start,
    gateway,
    leave_to_brokers,
    read_in_turns,
    read_with_librdkafka,
    rights_follow,
)
from tests.e2e.shared import Shared
from tests.fixtures.certificates import Authority
from tests.fixtures.jaas import jaas_file
from tests.fixtures.kafka_tools import NEW, KafkaTools
from tests.fixtures.token_issuer import TokenIssuer

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <s:ResourceWarning"),
]

_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
_LOGIN = f"{_PACKAGE}.OAuthBearerLoginCallbackHandler"
_VALIDATOR = f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler"
_AUDIENCE = "kafka"
_SECRETS = {"cluster": "hush", "alice": "wonder", "bob": "build"}
_LIFE_S = 20.0
_AT_ONCE = {
    "sasl.login.refresh.min.period.seconds": "0",
    "sasl.login.refresh.buffer.seconds": "0",
}
"""Java's clients get new tokens as often as such lives take."""


class _Provider(AbstractTokenProvider):
    def __init__(self, issuer: TokenIssuer, user: str) -> None:
        super().__init__()
        self._issuer = issuer
        self._user = user

    def token(self) -> str:
        return self._issuer.token(self._user)


@dataclass(frozen=True)
class Tokened:
    """A cluster, who issues tokens in it, and who signs certificates."""

    cluster: RealCluster
    issuer: TokenIssuer
    authority: Authority

    def python(self, user: str = "alice", issuer: TokenIssuer | None = None) -> dict[str, Any]:
        """How somebody connects with kafka-python."""
        return {
            "security_protocol": "SASL_SSL",
            "ssl_context": ssl.create_default_context(cafile=str(self.authority.trusted)),
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": _Provider(issuer or self.issuer, user),
        }

    def librdkafka(self, user: str = "alice") -> dict[str, Any]:
        """How somebody connects with librdkafka, which asks the issuer itself."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority.trusted),
            "https.ca.location": str(self.authority.trusted),
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": user,
            "sasl.oauthbearer.client.secret": _SECRETS[user],
            "sasl.oauthbearer.token.endpoint.url": self.issuer.token_url,
        }

    def java(self, user: str = "alice", secret: str = "") -> dict[str, str]:
        """How somebody connects with a client of Java's, which asks the issuer itself."""
        options = _module(user, self.authority, secret or _SECRETS[user])
        given = " ".join(f'{key}="{value}"' for key, value in options.items())
        return _AT_ONCE | {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.trusted),
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": _LOGIN,
            "sasl.oauthbearer.token.endpoint.url": self.issuer.token_url,
            "sasl.jaas.config": f"{_PACKAGE}.OAuthBearerLoginModule required {given};",
        }


def _module(user: str, authority: Authority, secret: str) -> dict[str, str]:
    return {
        "clientId": user,
        "clientSecret": secret,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.trusted),
    }


def _cluster(
    folder: Path, issuer: TokenIssuer, authority: Authority
) -> AbstractContextManager[RealCluster]:
    module = {"OAuthBearerLoginModule": _module("cluster", authority, _SECRETS["cluster"])}
    jaas = jaas_file(folder / "brokers.jaas", {"KafkaServer": module})
    shared = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": issuer.token_url,
        "sasl.oauthbearer.jwks.endpoint.url": issuer.keys_url,
        "sasl.oauthbearer.expected.audience": _AUDIENCE,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        # Who comes to the other listener has no name, and is what starts and watches the cluster.
        "super.users": "User:cluster;User:alice;User:ANONYMOUS",
    }
    handlers = f"listener.name.{SECURED.lower()}.oauthbearer.sasl"
    of_brokers = {
        f"{handlers}.login.callback.handler.class": _LOGIN,
        f"{handlers}.server.callback.handler.class": _VALIDATOR,
        **_AT_ONCE,
    }
    return sasl_cluster(folder, authority, jaas, shared, of_brokers=of_brokers)


@pytest.fixture(scope="module")
def clusters(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[Shared[Tokened]]:
    """Brokers and this node have tokens of one user."""
    with TokenIssuer(_SECRETS, authority.keystore("issuer"), _LIFE_S) as issuer:
        issuer.claims = {"aud": [_AUDIENCE, "account"]}

        @contextmanager
        def tokened() -> Iterator[Tokened]:
            with _cluster(tmp_path_factory.mktemp("tokened"), issuer, authority) as cluster:
                yield Tokened(cluster, issuer, authority)

        with Shared(tokened) as clusters:
            yield clusters


@pytest.fixture
def tokened(clusters: Shared[Tokened]) -> Tokened:
    return clusters.get()


def test_brokers_are_driven_and_answered_by_tokens(tokened: Tokened, tmp_path: Path) -> None:
    cluster = tokened.cluster
    drive_from_the_start(cluster, tmp_path, tokened.java())
    assert cluster.status()["gateway"].get("closed_unauthenticated", 0) == 0


def test_groups_of_clients_with_tokens_are_coordinated_here(
    tokened: Tokened, tmp_path: Path
) -> None:
    create(tokened.cluster, tmp_path, "read", tokened.java())
    read_in_turns(tokened.cluster, "read", tokened.python())


def test_librdkafka_reads_and_commits_by_tokens(tokened: Tokened, tmp_path: Path) -> None:
    create(tokened.cluster, tmp_path, "read-too", tokened.java())
    read_with_librdkafka(tokened.cluster, "read-too", tokened.librdkafka())


def test_members_go_on_when_their_tokens_end(tokened: Tokened, tmp_path: Path) -> None:
    create(tokened.cluster, tmp_path, TOPIC, tokened.java())
    tools = KafkaTools(NEW, [], tmp_path)
    config = tools.properties("member", tokened.java())
    at = brokers(tokened.cluster)
    members = [
        Member("of-python", PythonClient(at, "of-python", **tokened.python())),
        Member("of-librdkafka", RdClient(at, "of-librdkafka", **tokened.librdkafka())),
        Member("of-java", JavaClient(at, "of-java", tmp_path, "--consumer.config", str(config))),
    ]
    with producing(tokened.librdkafka(), at):
        for member in members:
            member.start()
        try:
            for member in members:
                member.goes_on()
            ends_s = time.monotonic() + 1.5 * _LIFE_S
            while time.monotonic() < ends_s:
                for member in members:
                    member.goes_on()
        finally:
            for member in members:
                member.stop()
    assert [member.error for member in members] == [None] * 3
    assert tokened.cluster.status()["gateway"].get("closed_unauthenticated", 0) == 0


def test_a_token_says_whose_rights_count(tokened: Tokened, tmp_path: Path) -> None:
    rights_follow(tokened.cluster, tmp_path, tokened.java, "User:bob")


def test_who_has_a_token_of_somebody_else_is_kept_out(tokened: Tokened) -> None:
    def refused() -> int:
        return int(tokened.cluster.status()["gateway"].get("closed_unauthenticated", 0))

    before = refused()
    with TokenIssuer(life_s=600.0) as another, pytest.raises(KafkaError):
        another.claims = {"aud": _AUDIENCE}
        KafkaAdminClient(
            bootstrap_servers=gateway(tokened.cluster),
            bootstrap_timeout_ms=3_000,
            **tokened.python(issuer=another),
        )
    assert refused() > before


def test_the_issuer_may_sign_with_another_key(tokened: Tokened, tmp_path: Path) -> None:
    create(tokened.cluster, tmp_path, "before", tokened.java())
    tokened.issuer.add("ES256")
    create(tokened.cluster, tmp_path, "after", tokened.java())


def test_the_cluster_goes_on_without_us(
    clusters: Shared[Tokened], tokened: Tokened, tmp_path: Path
) -> None:
    create(tokened.cluster, tmp_path, "kept", tokened.java())
    clusters.spoil()
    leave_to_brokers(tokened.cluster, "kept", tmp_path)
