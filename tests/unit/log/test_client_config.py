"""The properties of a client, by which a log cluster is reached."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from kafka.errors import KafkaConnectionError

from streaming.errors import ConfigurationError
from streaming.log.client_config import security_options
from streaming.preflight import check_log_clusters
from tests.fixtures.certificates import Authority
from tests.fixtures.token_issuer import TokenIssuer

LOGIN = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
    'sasl.jaas.config=a.b.ScramLoginModule required username="u" \\\n   password="p\\\\"w";\n'
)
BEARER = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
    "sasl.oauthbearer.token.endpoint.url=https://issuer/token\n"
    'sasl.jaas.config=a.b.OAuthBearerLoginModule required clientId="c" clientSecret="p\\\\"w";\n'
)
TICKET = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
    'sasl.jaas.config=a.b.Krb5LoginModule required useKeyTab=true principal="u@R";\n'
)


def written(folder: Path, text: str) -> Path:
    file = folder / "client.properties"
    file.write_text(text)
    return file


def test_what_is_not_about_security_does_not_count(tmp_path: Path) -> None:
    file = written(tmp_path, "# comment\nbootstrap.servers = a:1\nclient.id=c\nacks: all\n")
    assert security_options(file) == {"security_protocol": "PLAINTEXT"}


def test_name_and_password_are_those_of_the_login_module(tmp_path: Path) -> None:
    assert security_options(written(tmp_path, LOGIN)) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "u",
        "sasl_plain_password": 'p"w',
    }


def test_a_token_is_got_whenever_one_is_needed(tmp_path: Path) -> None:
    with TokenIssuer({"c": 'p"w'}) as issuer:
        file = written(tmp_path, BEARER.replace("https://issuer/token", issuer.token_url))
        options = security_options(file)
        provider = options.pop("sasl_oauth_token_provider")
        assert options == {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
        assert provider.token() == provider.token() and issuer.asked["/token"] == 1
    other = security_options(file)["sasl_oauth_token_provider"]
    with pytest.raises(KafkaConnectionError, match="cannot be asked"):  # which is tried again
        other.token()


def test_a_ticket_is_for_the_service_of_the_brokers(tmp_path: Path) -> None:
    of_the_module = TICKET.replace("service.name=kafka", "service.name=").replace(
        "useKeyTab", "serviceName=brokers useKeyTab"
    )
    for text, service in ((TICKET, "kafka"), (of_the_module, "brokers")):
        options = security_options(written(tmp_path, text))
        login = options.pop("sasl_kerberos_name")
        assert options == {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}
        assert login.service == service


@pytest.mark.parametrize(("said", "checked"), [("", True), ("\nx=", True), ("{}=", False)])
def test_names_are_compared_unless_that_is_switched_off(
    tmp_path: Path, said: str, checked: bool
) -> None:
    authority = Authority(tmp_path)
    said = said.format("\nssl.endpoint.identification.algorithm")
    file = written(
        tmp_path,
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location="
        f"{authority.trusted}\nssl.keystore.type=PEM\nssl.keystore.location="
        f"{authority.keystore('one')}{said}\n",
    )
    context = security_options(file)["ssl_context"].current()
    assert (context.check_hostname, context.verify_mode) == (checked, ssl.CERT_REQUIRED)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("security.protocol=TLS", "security.protocol = 'TLS'; allowed are PLAINTEXT, SSL, SASL_P"),
        ("ssl.keystore.type=JKS", "ssl.keystore.type = 'JKS'; allowed are PEM"),
        ("ssl.keystore.password=p", "ssl.keystore.password is not known here; of security, allow"),
        ("security.protocol=SSL\nssl.truststore.location=t", "needs ssl.truststore.type = PEM"),
        (
            "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=/none",
            "ssl.truststore.location = '/none' cannot be used",
        ),
        ("security.protocol=SASL_SSL", "sasl.mechanism is missing; allowed are PLAIN, SCRAM"),
        (LOGIN.replace("SCRAM-SHA-256", "NTLM"), "sasl.mechanism = 'NTLM'; allowed are PLAIN, SC"),
        (LOGIN.replace("username", "user"), "sasl.jaas.config has no username="),
        (BEARER.replace("clientSecret", "secret"), "sasl.jaas.config has no clientSecret="),
        (BEARER.replace("https:", "ftp:"), "endpoint.url = 'ftp://issuer/token'; allowed is where"),
        (BEARER.replace(";", " ssl.truststore.location=/none;"), "location = '/none' cannot be"),
        (f"{BEARER}sasl.login.callback.handler.class=a.B", "class = 'a.B'; allowed are org.apache"),
        (TICKET.replace("Krb5", "Scram"), "has ScramLoginModule; for GSSAPI allowed is com.sun.s"),
        (TICKET.replace("=kafka", "="), "sasl.kerberos.service.name is missing; allowed is what"),
        (TICKET.replace(";", " keyTab=/none;"), "config's keyTab = '/none' cannot be read"),
        (f"{TICKET}java.security.krb5.conf=/none", "krb5.conf = '/none' cannot be read; allow"),
        (LOGIN.replace(";", ""), "sasl.jaas.config cannot be read: line 1"),
        (LOGIN.partition("sasl.jaas")[0], "sasl.jaas.config has 0 login modules, allowed is one"),
        ("a=\\u12", "holds no properties"),
    ],
)
def test_what_cannot_be_used_is_named_with_what_is_allowed(
    tmp_path: Path, text: str, said: str
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as refused:
        check_log_clusters("", f"kafka://a:1/t?config={file}")
    assert str(file) in str(refused.value)
    assert said in str(refused.value)
    assert 'p"w' not in str(refused.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigurationError, match="cannot read /none: No such file"):
        check_log_clusters("kafka://a:1/t?config=/none", "kafka://a:1/t")
