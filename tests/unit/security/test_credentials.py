"""Who we are is in the brokers' own file, and what is missing there is said before the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.errors import ConfigurationError
from streaming.security.credentials import (
    DIGEST_MD5,
    check_credentials,
    issuer_context,
    kerberos_acceptor,
    own_credentials,
    plain_users,
    zookeeper_credentials,
)
from streaming.security.ourselves import Credentials
from streaming.security.protocols import configured_listeners, spoken_protocols
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.wire.endpoints import SecurityProtocol
from tests.fixtures.certificates import Authority
from tests.fixtures.jaas import Modules, jaas_file, login

PLAIN = {"PlainLoginModule": login("node", "hush", node="hush", alice="a")}
SCRAM = {"ScramLoginModule": login("cluster", "hash")}
DIGEST = {"DigestLoginModule": login("kafka", "to-zookeeper")}
BY_PLAIN = "sasl.mechanism.inter.broker.protocol=PLAIN"
BEARER = {"OAuthBearerLoginModule": {"clientId": "node", "clientSecret": "hush"}}
BY_BEARER = "sasl.mechanism.inter.broker.protocol=OAUTHBEARER"
KEYS = "sasl.oauthbearer.jwks.endpoint.url=https://issuer/keys"
TOKENS = "sasl.oauthbearer.token.endpoint.url=https://issuer/token"
BY_TICKET = "sasl.mechanism.inter.broker.protocol=GSSAPI"
SERVICE = "sasl.kerberos.service.name=kafka"
KERBEROS = {"Krb5LoginModule": {"useKeyTab": "true", "principal": "kafka/host@REALM"}}
BY_SCRAM = "sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512"
LOGIN = "sasl.login.class.path=/a"


def settings(folder: Path, sections: dict[str, Modules], *overrides: str) -> Settings:
    path = jaas_file(folder / "jaas.conf", sections)
    given = [f"java.security.auth.login.config={path}", *overrides]
    return load_settings(overrides=given, environment={})


def test_without_a_mechanism_nobody_is_told_who_we_are(tmp_path: Path) -> None:
    given = settings(tmp_path, {"KafkaServer": PLAIN})
    assert own_credentials(given) is None
    assert zookeeper_credentials(given) is None
    assert given.sasl_mechanisms == ()
    check_credentials(given)


def test_our_name_is_the_mechanisms(tmp_path: Path) -> None:
    both = {"KafkaServer": PLAIN | SCRAM, "Client": DIGEST}
    given = settings(tmp_path, both, BY_SCRAM, "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512")
    assert own_credentials(given) == Credentials("SCRAM-SHA-512", "cluster", "hash")
    assert zookeeper_credentials(given) == Credentials(DIGEST_MD5, "kafka", "to-zookeeper")
    assert plain_users(given, "CLIENT") == {"node": "hush", "alice": "a"}
    assert given.sasl_mechanisms == ("PLAIN", "SCRAM-SHA-512")
    given = settings(tmp_path, both, BY_PLAIN)
    assert own_credentials(given) == Credentials("PLAIN", "node", "hush")
    assert given.sasl_mechanisms == ("PLAIN",)
    assert "hush" not in repr(own_credentials(given))


def test_a_token_is_got_with_the_secret_of_a_client(tmp_path: Path) -> None:
    issuer = Authority(tmp_path / "issuer")
    options = BEARER["OAuthBearerLoginModule"] | {"ssl.truststore.location": str(issuer.trusted)}
    sections = {"KafkaServer": PLAIN | {"OAuthBearerLoginModule": options}}
    given = settings(tmp_path, sections, BY_BEARER, KEYS, TOKENS)
    check_credentials(given)
    ours = own_credentials(given)
    assert ours is not None and ours.begin is not None
    assert ours == Credentials("OAUTHBEARER", "node", begin=ours.begin)
    assert "hush" not in repr(ours)
    (trusted,) = issuer_context(given, "CLIENT").current().get_ca_certs()
    assert trusted["subject"] == trusted["issuer"]


def test_who_only_takes_tokens_needs_no_secret(tmp_path: Path) -> None:
    both = "sasl.enabled.mechanisms=PLAIN,OAUTHBEARER"
    given = settings(tmp_path, {"KafkaServer": PLAIN}, BY_PLAIN, both, KEYS)
    check_credentials(given)
    assert own_credentials(given) == Credentials("PLAIN", "node", "hush")


def test_whom_an_issuer_is_trusted_by_has_to_be_there(tmp_path: Path) -> None:
    options = BEARER["OAuthBearerLoginModule"] | {"ssl.truststore.location": "/none.pem"}
    sections = {"KafkaServer": {"OAuthBearerLoginModule": options}}
    given = settings(tmp_path, sections, BY_BEARER, KEYS, TOKENS)
    with pytest.raises(ConfigurationError) as caught:
        check_credentials(given)
    named = "OAuthBearerLoginModule's ssl.truststore.location = '/none.pem' cannot be used"
    assert str(caught.value).startswith(named)


def test_a_ticket_is_got_with_a_key_in_a_file(tmp_path: Path) -> None:
    keytab = tmp_path / "keytab"
    keytab.touch()
    module = {"Krb5LoginModule": KERBEROS["Krb5LoginModule"] | {"keyTab": f"FILE:{keytab}"}}
    given = settings(tmp_path, {"KafkaServer": module, "Client": module}, BY_TICKET, SERVICE)
    check_credentials(given)
    ours, to_zookeeper = own_credentials(given), zookeeper_credentials(given)
    assert ours is not None and ours.begin is not None
    assert ours == Credentials("GSSAPI", "kafka/host@REALM", begin=ours.begin)
    assert to_zookeeper is not None and to_zookeeper.begin is not None
    assert kerberos_acceptor(given, "CLIENT") is kerberos_acceptor(given, "INTERNAL")
    no_realm = f"java.security.krb5.conf={tmp_path / 'none'}"
    with pytest.raises(ConfigurationError, match=r"^java\.security\.krb5\.conf = '.*none' cannot"):
        check_credentials(settings(tmp_path, {"KafkaServer": module}, BY_TICKET, SERVICE, no_realm))
    keytab.unlink()
    with pytest.raises(ConfigurationError, match=f"keyTab '{keytab}' of its Krb5LoginModule can"):
        check_credentials(given)


def test_a_service_may_be_named_in_the_file(tmp_path: Path) -> None:
    module = {"Krb5LoginModule": KERBEROS["Krb5LoginModule"] | {"serviceName": "kafka"}}
    check_credentials(settings(tmp_path, {"KafkaServer": module}, BY_TICKET))


@pytest.mark.parametrize(
    "override", [SERVICE, "sasl.kerberos.principal.to.local.rules=RULE:[1:$1]"]
)
def test_what_is_about_tickets_is_not_passed_over(tmp_path: Path, override: str) -> None:
    key = override.partition("=")[0]
    with pytest.raises(ConfigurationError, match=f"^{key} is about GSSAPI, by which nobody may"):
        settings(tmp_path, {"KafkaServer": PLAIN}, BY_PLAIN, override)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_java_logs_us_in_without_names_and_urls_of_ours(mechanism: str) -> None:
    given = [f"sasl.mechanism.inter.broker.protocol={mechanism}", LOGIN, KEYS]
    if mechanism != "OAUTHBEARER":
        given.remove(KEYS)
    ours = own_credentials(load_settings(overrides=given, environment={}))
    assert ours is not None and ours.begin is not None  # no JVM is there before it is used
    assert (ours.mechanism, ours.password) == (mechanism, "")


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["sasl.login.config=/a"], r"^sasl\.login\.config names login classes .* there are none"),
        ([LOGIN], r"^sasl\.login\.class\.path = /a is about .*\.inter\.broker\.protocol is empty"),
        ([LOGIN, BY_TICKET], r"^sasl\.login\.class\.path = /a is about .* is GSSAPI: set that"),
        (
            [LOGIN, BY_BEARER, KEYS, TOKENS],
            r"^sasl\.oauthbearer\.token\.endpoint\.url is not read where sasl\.login\.class\.path",
        ),
    ],
)
def test_what_is_about_login_classes_is_not_passed_over(
    tmp_path: Path, overrides: list[str], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        settings(tmp_path, {"KafkaServer": PLAIN}, *overrides)


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ([BY_BEARER, TOKENS], r"^sasl\.oauthbearer\.jwks\.endpoint\.url is empty, and who comes"),
        ([BY_BEARER, KEYS], r"^sasl\.oauthbearer\.token\.endpoint\.url is empty, and this node"),
        ([BY_PLAIN, KEYS], r"^sasl\.oauthbearer\.jwks\.endpoint\.url is about OAUTHBEARER"),
        ([TOKENS], r"^sasl\.oauthbearer\.token\.endpoint\.url is about OAUTHBEARER, by which"),
        (
            [BY_PLAIN, "sasl.oauthbearer.expected.audience=kafka"],
            r"^sasl\.oauthbearer\.expected\.audience is about OAUTHBEARER",
        ),
        (
            [BY_BEARER, KEYS, "sasl.oauthbearer.token.endpoint.url=issuer/token"],
            "allowed is a URL that begins with https://, http:// or file://",
        ),
    ],
)
def test_urls_of_issuers_are_there_or_not_needed(
    tmp_path: Path, overrides: list[str], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        settings(tmp_path, {"KafkaServer": BEARER | PLAIN}, *overrides)


def test_a_listener_may_have_a_section_of_its_own(tmp_path: Path) -> None:
    inner = {"PlainLoginModule": login("inner", "other", bob="b")}
    sections = {"KafkaServer": PLAIN, "internal.KafkaServer": inner}
    given = settings(tmp_path, sections, BY_PLAIN, "inter.broker.listener.name=INTERNAL")
    assert own_credentials(given) == Credentials("PLAIN", "inner", "other")
    assert plain_users(given, "INTERNAL") == {"bob": "b"}
    assert plain_users(given, "CLIENT") == {"node": "hush", "alice": "a"}


@pytest.mark.parametrize(
    ("sections", "overrides", "reason"),
    [
        ({"Client": DIGEST}, [BY_PLAIN], "its section KafkaServer has no PlainLoginModule"),
        ({"KafkaServer": PLAIN}, [BY_SCRAM], "has no ScramLoginModule, which sasl.mechanism"),
        (
            {"KafkaServer": {"PlainLoginModule": {"username": "x"}}},
            [BY_PLAIN],
            "its PlainLoginModule has no password",
        ),
        (
            {"KafkaServer": {"OAuthBearerLoginModule": {"clientId": "x"}}},
            [BY_BEARER, KEYS, TOKENS],
            "its OAuthBearerLoginModule has no clientSecret",
        ),
        ({"KafkaServer": PLAIN}, [BY_TICKET, SERVICE], "its section KafkaServer has no Krb5Login"),
        ({"KafkaServer": KERBEROS}, [BY_TICKET], "its Krb5LoginModule has no serviceName, and"),
        (
            {"KafkaServer": PLAIN},
            [BY_PLAIN, "sasl.enabled.mechanisms=PLAIN,GSSAPI"],
            "has no Krb5LoginModule, which who comes by GSSAPI takes",
        ),
        (
            {"Client": PLAIN},
            [],
            "its section Client has no DigestLoginModule and no Krb5LoginModule",
        ),
        (
            {"Client": PLAIN},
            [
                "zookeeper.ssl.client.enable=true",
                "zookeeper.ssl.keystore.location=/key.pem",
                "zookeeper.set.acl=true",
            ],
            "its section Client has no DigestLoginModule",
        ),
        ({"KafkaServer": PLAIN}, ["zookeeper.set.acl=true"], "and it has no section Client"),
    ],
)
def test_what_the_file_lacks_is_said(
    tmp_path: Path, sections: dict[str, Modules], overrides: list[str], reason: str
) -> None:
    given = settings(tmp_path, sections, *overrides)
    with pytest.raises(ConfigurationError) as caught:
        check_credentials(given)
    said = str(caught.value)
    assert said.startswith("java.security.auth.login.config = '") and reason in said
    assert "allowed: a JAAS file as brokers have it" in said
    assert "hush" not in said


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    given = settings(tmp_path, {"KafkaServer": PLAIN}, BY_PLAIN)
    path = Path(given.java_security_auth_login_config)
    for content, reason in ((b"KafkaServer", "line 1: { was expected"), (b"\xff", "not UTF-8")):
        path.write_bytes(content)
        with pytest.raises(ConfigurationError, match=reason):
            check_credentials(given)
    path.unlink()
    with pytest.raises(ConfigurationError, match="No such file"):
        check_credentials(given)


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        (BY_PLAIN, r"PLAIN needs a name and a secret: set java\.security\.auth\.login\.config"),
        ("sasl.enabled.mechanisms=PLAIN", r"sasl\.enabled\.mechanisms is about SASL, in which"),
        ("listener.security.protocol.map=C:SASL_PLAINTEXT", "protocol.map is about SASL"),
        ("listener.security.protocol.map=C:SASL_SSL", "protocol.map is about TLS"),
        ("sasl.mechanism.inter.broker.protocol=NTLM", "allowed are PLAIN, SCRAM-SHA-256"),
        ("sasl.enabled.mechanisms=PLAIN,PLAIN", "allowed is PLAIN, SCRAM-SHA-256, SCRAM"),
        ("sasl.enabled.mechanisms=NTLM", "allowed is PLAIN, SCRAM-SHA-256, SCRAM"),
        ("zookeeper.set.acl=true", "java.security.auth.login.config to a JAAS file"),
    ],
)
def test_settings_that_cannot_be_are_refused(override: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        load_settings(overrides=[override], environment={})


def test_the_mechanism_of_brokers_has_to_be_enabled(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"sasl\.enabled\.mechanisms = PLAIN lacks"):
        settings(tmp_path, {"KafkaServer": SCRAM}, BY_SCRAM, "sasl.enabled.mechanisms=PLAIN")


def test_an_empty_section_is_none(tmp_path: Path) -> None:
    given = settings(tmp_path, {"KafkaServer": PLAIN, "internal.KafkaServer": {}, "Client": {}})
    assert zookeeper_credentials(given) is None
    assert plain_users(given, "INTERNAL") == {"node": "hush", "alice": "a"}


def test_what_is_spoken_follows_from_key_and_mechanism(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    sections = {"KafkaServer": PLAIN}
    plain, secured = SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL
    with_name = settings(tmp_path, sections, BY_PLAIN)
    assert spoken_protocols(with_name) == {SecurityProtocol.PLAINTEXT, plain}
    with_both = settings(
        tmp_path,
        sections,
        BY_PLAIN,
        f"ssl.keystore.location={authority.keystore('ours')}",
        "gateway.listeners=CLIENT,SASL_SSL,INTERNAL",
        "listener.security.protocol.map=INTERNAL:SASL_PLAINTEXT",
    )
    assert spoken_protocols(with_both) == set(SecurityProtocol)
    assert configured_listeners(with_both) == {
        "CLIENT": SecurityProtocol.PLAINTEXT,
        "SASL_SSL": secured,
        "INTERNAL": plain,
    }


def test_passwords_are_not_among_the_configs_that_tools_read(tmp_path: Path) -> None:
    given = settings(tmp_path, {"KafkaServer": PLAIN}, BY_PLAIN)
    assert "hush" not in str(given)
    assert given.java_security_auth_login_config.endswith("jaas.conf")
