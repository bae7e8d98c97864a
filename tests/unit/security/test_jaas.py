"""Files of Java's authentication service are read as Java reads them."""

from __future__ import annotations

import pytest

from streaming.keyfiles.jaas import JaasError, parse_jaas

BROKERS = """
/* of all
   brokers */
KafkaServer {
  org.apache.kafka.common.security.plain.PlainLoginModule required
    username="ad\\"min" password="a {b}; // c" // who we are
    user_admin="a\\\\b" "user_x=y"="1" serviceName=kafka;
  org.apache.kafka.common.security.scram.ScramLoginModule optional;
};
internal.KafkaServer{a.Plain REQUIRED;};
Client { };
"""


def test_sections_have_modules_and_these_options() -> None:
    found = parse_jaas(BROKERS)
    assert list(found) == ["KafkaServer", "internal.KafkaServer", "Client"]
    plain, scram = found["KafkaServer"]
    assert (plain.name, scram.name) == ("PlainLoginModule", "ScramLoginModule")
    assert plain.options == {
        "username": 'ad"min',
        "password": "a {b}; // c",
        "user_admin": "a\\b",
        "user_x=y": "1",
        "serviceName": "kafka",
    }
    assert scram.options == {}
    assert [one.name for one in found["internal.KafkaServer"]] == ["Plain"]
    assert found["Client"] == []
    assert parse_jaas("") == {}


@pytest.mark.parametrize(
    ("written", "meant"),
    [("\\t", "\t"), ("\\101", "A"), ("\\0", "\0"), ("\\q", "q"), ("\\8", "8"), ("\\377", "ÿ")],
)
def test_escapes_are_those_of_java(written: str, meant: str) -> None:
    (module,) = parse_jaas(f'A {{ m required p="x{written}y"; }};')["A"]
    assert module.options == {"p": f"x{meant}y"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A", "line 1: { was expected"),
        ("A {", "line 1: a login module was expected"),
        ("A {\n m needed; };", "line 2: one of optional, required, requisite, sufficient was"),
        ("A { m required\n p; };", "line 2: = was expected"),
        ("A { m required p=; };", "line 1: an option's value was expected"),
        ("A { m required; secret secret };", "line 1: one of optional, required"),
        ("A { m required p=1 };", "line 1: an option or ; was expected"),
        ("A { m required; }", "line 1: ; was expected"),
        ("{", "line 1: a section's name was expected"),
        ("A { };\nA { };", "line 2: section A is there twice"),
        ('A { m required\n p="secret\n"; };', "line 2: a quote or comment has no end"),
        ("A { /* };", "line 1: a quote or comment has no end"),
        ('A { m required p="${x}"; };', "line 1: properties of Java"),
    ],
)
def test_what_is_wrong_is_said_without_what_is_secret(text: str, reason: str) -> None:
    with pytest.raises(JaasError) as caught:
        parse_jaas(text)
    assert str(caught.value).startswith(reason)
    assert "secret" not in str(caught.value)


def test_passwords_are_in_no_message() -> None:
    (module,) = parse_jaas('A { m required password="hush"; };')["A"]
    assert "hush" not in repr(module)
