"""Principal builders of Kafka's own tests, in a JVM: who clients are."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from streaming.embedded.java_class import shared_jvm
from streaming.embedded.java_functions import FUNCTION
from streaming.embedded.jvm import KeptObject, SmallJvm, asked
from streaming.errors import ConfigurationError
from streaming.front.login_classes import java_logins
from streaming.front.principal_builder import check_principal_builder, naming, principal_builder
from streaming.front.rights import java_authorizer
from streaming.security.acls import Client, Operation, ResourceType
from streaming.security.authorizer import AuthorizerFailed, Inquiry
from streaming.security.broker_configs import broker_configs
from streaming.security.identity import Identity, Refused, Undecided
from streaming.security.newcomers import Newcomer
from streaming.security.started_authorizer import ServerInfo, _like
from streaming.setting_types import KAFKAS_BUILDER
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from tests.fixtures.jaas import jaas_file
from tests.fixtures.jars_of_tests import (
    AUTHORIZER,
    BY_LISTENER,
    BY_LOGIN,
    BY_SUBJECT,
    LOGINS,
    USERS,
    jars_of_tests,
)
from tests.fixtures.waiting import wait_for

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

CN, ORGANIZATION = x509.NameOID.COMMON_NAME, x509.NameOID.ORGANIZATION_NAME
SSL = SecurityProtocol.SSL
SERVER = ServerInfo(
    broker_id=7,
    cluster_id="a-cluster",
    inter_broker_listener="CLIENT",
    endpoints=[Endpoint(listener="CLIENT", host="here", port=9092, security_protocol=SSL)],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("builders")
    jars_of_tests(folder / "jars")
    jaas_file(folder / "jaas", {"KafkaServer": {"PlainLoginModule": {"username": "u"}}})
    return folder


def settings(folder: Path, name: str, *overrides: str) -> Settings:
    given = [
        f"principal.builder.class={name}",
        f"principal.builder.class.path={folder}/jars/*",
        "inter.broker.listener.name=CLIENT",
        *overrides,
    ]
    return load_settings(overrides=given, environment={})


def came(
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT,
    certificate: bytes | None = None,
    user: str = "",
    *,
    by_token: bool = False,
    listener: str = "CLIENT",
) -> Newcomer:
    identity = Identity(f"User:{user}", by_token=by_token) if user else None
    return Newcomer(
        host="10.0.0.1",
        listener=listener,
        protocol=protocol,
        certificate=certificate,
        mechanism="SCRAM-SHA-512" if user else "",
        identity=identity,
    )


def said(given: Settings, newcomer: Newcomer) -> Client:
    builder = principal_builder(given, newcomer.listener)
    assert builder is not None
    return asyncio.run(builder.client(newcomer))


def killed(jvm: SmallJvm) -> None:
    process = jvm._process
    assert process is not None
    process.kill()
    process.wait(30)


def test_it_is_told_who_logged_in(folder: Path) -> None:
    given, protocol = settings(folder, BY_LOGIN), SecurityProtocol.SASL_PLAINTEXT
    found = said(given, came(protocol, user="ü, 🦊"))
    assert (found.principal, found.host, found.proven) == ("Group:ü, 🦊", "10.0.0.1", True)
    by_token = said(given, came(protocol, user="a", by_token=True))
    assert not by_token.proven and by_token.java_principal is not None
    assert by_token.java_principal.java.tokenAuthenticated()
    anonymous = said(given, came())
    assert (anonymous.principal, anonymous.proven) == ("User:ANONYMOUS", False)


def certificate(*names: tuple[x509.ObjectIdentifier, str]) -> bytes:
    """One in DER, signed by its own key."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(oid, value) for oid, value in names]),
    )
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(Encoding.DER)


@pytest.mark.parametrize(
    ("subject", "principal"),
    [
        ([(CN, "b"), (ORGANIZATION, "A server")], "User:server"),
        ([(CN, "ü, b"), (ORGANIZATION, "A client")], r"User:O=A client,CN=ü\, b"),
        ([(CN, "b")], "User:ANONYMOUS"),
    ],
)
def test_it_is_told_of_a_certificate(
    folder: Path, subject: list[tuple[x509.ObjectIdentifier, str]], principal: str
) -> None:
    found = said(settings(folder, BY_SUBJECT), came(SSL, certificate(*subject)))
    assert (found.principal, found.proven) == (principal, principal != "User:ANONYMOUS")


def test_what_it_raises_lets_nobody_in(folder: Path) -> None:
    with pytest.raises(Refused, match=r"^the principal builder: peer not authenticated"):
        said(settings(folder, BY_SUBJECT), came(SSL))
    with pytest.raises(Refused, match="No principal mapped to listener OTHER"):
        said(settings(folder, BY_LISTENER), came(listener="OTHER"))


def test_it_is_told_of_the_listener(folder: Path) -> None:
    assert said(settings(folder, BY_LISTENER), came()).principal == "Group:client"


def test_an_authorizer_gets_the_principal_as_it_was_built(folder: Path, zookeeper: str) -> None:
    """Some say more than a name, such as the group of a user."""
    given = settings(
        folder,
        BY_LOGIN,
        f"authorizer.class.name={AUTHORIZER}",
        f"authorizer.class.path={folder}/jars/*",
        f"zookeeper.connect={zookeeper}",
    )
    alice = said(given, came(SecurityProtocol.SASL_SSL, user="alice"))
    authorizer = java_authorizer(given)
    assert authorizer is not None
    authorizer.start(SERVER)
    right = (Operation.READ, ResourceType.TOPIC, "a")

    def of(client: Client) -> Inquiry:
        return Inquiry(client, "CLIENT", ApiKey.METADATA, 12, 5, "a client")

    try:
        assert asyncio.run(authorizer.ask(of(alice), {right: True})) == {right: False}
        with asked():
            packages = shared_jvm(f"{folder}/jars/*", ()).packages()
            grouped = packages.kafka.api.GroupedUserPrincipal("bob", "of-bob")
            bob = replace(alice, java_principal=KeptObject(packages, grouped))
            started = authorizer._asking.get()
            make = started._functions.as_interface(FUNCTION, started._context(_like(of(bob))))
            assert make.apply(5).principal().userGroup() == "of-bob"
        killed(authorizer._jvm)
        with pytest.raises(AuthorizerFailed, match="what it knew of a client"):
            asyncio.run(authorizer.ask(of(alice), {right: True}))
        assert asyncio.run(authorizer.ask(of(Client("User:a", "10.0.0.1")), {right: True}))
    finally:
        authorizer.close()


def test_it_is_told_of_what_found_out_who_logged_in(folder: Path) -> None:
    """In the same JVM: what a callback handler leaves there, such as a token, can be asked for."""
    given = settings(
        folder,
        BY_LOGIN,
        f"plain.sasl.server.callback.handler.class={LOGINS}",
        f"sasl.server.callback.handler.class.path={folder}/jars/*",
        f"java.security.auth.login.config={folder}/jaas",
        "sasl.mechanism.inter.broker.protocol=PLAIN",
    )
    server = java_logins(given, "CLIENT")["PLAIN"].server()
    ((user, password), *_) = USERS.items()
    asyncio.run(server.respond(f"\0{user}\0{password}".encode()))
    newcomer = replace(came(SecurityProtocol.SASL_SSL), mechanism="PLAIN", identity=server.identity)
    assert said(given, newcomer).principal == f"Group:{user}"
    killed(shared_jvm(f"{folder}/jars/*", given.jvm_options))
    with pytest.raises(Undecided, match="what it knew of a client"):
        said(given, newcomer)


def test_a_jvm_that_is_gone_is_started_again(folder: Path) -> None:
    builder = principal_builder(settings(folder, BY_LISTENER), "CLIENT")
    assert builder is not None
    builder.start()
    wait_for("the JVM", lambda: builder._jvm._process)
    for _ in range(2):
        assert asyncio.run(builder.client(came())).principal == "Group:client"
        killed(builder._jvm)


def test_without_a_jvm_nothing_is_decided(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    given = settings(folder, BY_LISTENER)
    elsewhere = given.model_copy(
        update={"principal_builder_class_path": f"{folder}/jars/*:{tmp_path}"}
    )
    with pytest.raises(Undecided, match="no bin/java in it"):
        said(elsewhere, came())
    builder = principal_builder(elsewhere, "CLIENT")
    assert builder is not None
    builder.start()
    wait_for("a line of the log", lambda: "it is tried again with each client" in caplog.text)


def test_which_class_it_is_the_brokers_file_may_say_for_each_listener(
    folder: Path, tmp_path: Path
) -> None:
    key = "principal.builder.class"
    file = tmp_path / "server.properties"
    file.write_text(
        f"listener.name.client.{key}={BY_LISTENER}\nlistener.name.other.{key}={KAFKAS_BUILDER}\n"
    )
    given = settings(folder, KAFKAS_BUILDER, f"principal.builder.config={file}")
    assert said(given, came()).principal == "Group:client"
    for kafkas in ("OTHER", "THIRD"):
        assert principal_builder(given, kafkas) is None
    without = load_settings(overrides=[f"{key}={KAFKAS_BUILDER}"], environment={})
    assert naming(without).builder_of("CLIENT") is None
    check_principal_builder(without)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no.such.Builder", r"\(no\.such\.Builder\)"),
        ("java.lang.String", r"\(it is no org\.apache\..*\.KafkaPrincipalBuilder"),
    ],
)
def test_a_class_that_is_no_builder_is_refused_before_the_start(
    folder: Path, name: str, reason: str
) -> None:
    check_principal_builder(settings(folder, BY_LISTENER))
    with pytest.raises(
        ConfigurationError, match=rf"^principal\.builder\.class = {name} .*{reason}"
    ):
        check_principal_builder(settings(folder, name))


def test_a_broker_s_properties_are_read_as_by_a_broker(folder: Path) -> None:
    jvm = shared_jvm(f"{folder}/jars/*", ())
    properties = {
        "zookeeper.connect": "zk:2181",
        "acme.url": "a",
        "sasl.enabled.mechanisms": "PLAIN,GSSAPI",
        "listener.name.client.connections.max.reauth.ms": "7",
        "listener.name.other.connections.max.reauth.ms": "8",
    }
    with asked():
        read = broker_configs(jvm, properties, "CLIENT")
        assert read.get("acme.url") == "a"
        assert list(read.get("sasl.enabled.mechanisms")) == ["PLAIN", "GSSAPI"]
        assert read.get("connections.max.reauth.ms") == 7


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["principal.builder.class.path=/a"], "class.path is about a principal builder"),
        (["principal.builder.config=/a"], "config is about a principal builder"),
        (["principal.builder.class=a.B"], r"a\.B needs principal\.builder\.class\.path: allowed"),
        (
            [
                "principal.builder.class=a.B",
                "principal.builder.class.path=/a",
                "authorizer.class.name=a.C",
                "authorizer.class.path=/b",
            ],
            r"path = /a is not authorizer\.class\.path = /b, .* the same class path",
        ),
        (
            [
                "principal.builder.class=a.B",
                "principal.builder.class.path=/a",
                "sasl.enabled.mechanisms=OAUTHBEARER,PLAIN",
                "sasl.mechanism.inter.broker.protocol=PLAIN",
                "sasl.oauthbearer.jwks.endpoint.url=https://issuer/keys",
                "java.security.auth.login.config=/a",
            ],
            r"set oauthbearer\.sasl\.server\.callback\.handler\.class to the brokers'",
        ),
    ],
)
def test_settings_of_builders_go_together(given: list[str], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        load_settings(overrides=given, environment={})
