"""Names in certificates as Java writes them, what rules make of them, and addresses."""

from __future__ import annotations

import pytest
from asn1crypto.parser import emit, parse, peek
from asn1crypto.pem import unarmor
from asn1crypto.x509 import Name
from trustme import CA

from streaming.errors import ConfigurationError
from streaming.security.mapping_rules import mapping_rules
from streaming.security.principals import (
    NoPrincipal,
    certified_principal,
    distinguished_name,
    java_address,
)
from streaming.settings_loader import load_settings

# Subjects in DER, and what X500Principal.getName() of Java 17 makes of them.
AS_JAVA_WRITES_THEM = [
    (
        "3048310b300906035504061302444531153013060355040a0c0c41632c6d653b203c496e633e31143008060355"
        "040b1301783008060355040b130179310c300a06035504031303612062",
        r"CN=a b,OU=x+OU=y,O=Ac\,me\; \<Inc\>,C=DE",
    ),
    (
        "3027310a300806035504031301783119301706092a864886f70d010901160a666f6f406261722e6465",
        "1.2.840.113549.1.9.1=#160a666f6f406261722e6465,CN=x",
    ),
    ("30193117301506035504030c0e23686173683d657122715c7a2b70", r"CN=\#hash\=eq\"q\\z\+p"),
    (
        "30623111300f060a0992268993f22c64010113017531123010060a0992268993f22c64011916026463310a3008"
        "060355040713016c310b3009060355040913027374310a300806035504081301733114301206035504030c0b5a"
        "c3bc7269636820e29883",
        "CN=Zürich ☃,ST=s,STREET=st,L=l,DC=dc,UID=u",
    ),
    (
        "3028310a30080603550403130171310a30080603550405130135310e300c060355040c13057469746c65",
        "2.5.4.12=#13057469746c65,2.5.4.5=#130135,CN=q",
    ),
    ("300e310c300a06035504030c03610a62", "CN=a\nb"),
    ("300b3109300706035504031300", "CN="),
    (
        "301f311d301b060a0992268993f22c640119160d786e2d2d62636865722d6b7661",
        "DC=xn--bcher-kva",
    ),
    ("30193117301506035504030c0e206c6561642c20747261696c2020", r"CN=\ lead\, trail\ \ "),
    ("300d310b300906035504030c022020", r"CN=\ \ "),
    ("300e310c300a06035504030c03610062", r"CN=a\00b"),
    ("300e310c300a06035504031b0367656e", "CN=gen"),
    ("300e310c300a0603550403140374656c", "CN=tel"),
    ("300c310a3008060355042d0c0175", "2.5.4.45=#0c0175"),
    ("300c310a30080603550403020105", "CN=#020105"),
]


KAFKAS_OWN = "kafka.security.authorizer.AclAuthorizer"
_SUBJECT = 5  # behind version, number, algorithm, issuer and validity
_SEQUENCE = (0, 1, 16)


def certificate_of(subject: bytes) -> bytes:
    """A certificate, signed by nobody for it, with a subject."""
    pem = CA().issue_cert("host").cert_chain_pems[0].bytes()
    known, *rest = parts(unarmor(pem)[2])
    fields = parts(known)
    fields[_SUBJECT] = subject
    return sequence(sequence(*fields), *rest)


def parts(sequence: bytes) -> list[bytes]:
    """What is in the DER of a sequence."""
    inner = parse(sequence)[4]
    found = []
    while inner:
        size = peek(inner)
        found.append(inner[:size])
        inner = inner[size:]
    return found


def sequence(*inner: bytes) -> bytes:
    """The DER of a sequence."""
    return bytes(emit(*_SEQUENCE, b"".join(inner)))


@pytest.mark.parametrize(("subject", "name"), AS_JAVA_WRITES_THEM)
def test_a_subject_is_written_as_java_does(subject: str, name: str) -> None:
    assert distinguished_name(certificate_of(bytes.fromhex(subject))) == name


DN = "CN=kafka-user,OU=Service,O=Acme"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", DN),
        ("", None),
        (" DEFAULT , ", DN),
        ("RULE:^CN=(.*?),OU=Service.*$/$1/", "kafka-user"),
        ("RULE:^CN=(.*?),OU=Service.*$/$1/U", "KAFKA-USER"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L", "kafka-user@service"),
        ("RULE:^CN=(.*?),OU=Other.*$/$1/,DEFAULT", DN),
        ("RULE:^CN=(.*?),OU=Other.*$/$1/", None),
        ("RULE:CN=(.*?),.*/$1$2/", "kafka-user$2"),
        ("RULE:CN=(k)(a)(f)(k)(a)(-)(u)(s)(e)(r),.*/$10$11$2/", "rk1a"),
        (r"RULE:CN=\w+-\w+,.*/x/", "x"),
        ("RULE:CN=.*/<$0>/", f"<{DN}>"),
        ("RULE:CN=kafka/x/,RULE:.*Acme/a\\/b/", "a/b"),
    ],
)
def test_rules_say_what_a_name_stands_for(rules: str, name: str | None) -> None:
    subject = Name.build(
        {
            "organization_name": "Acme",
            "organizational_unit_name": "Service",
            "common_name": "kafka-user",
        }
    )
    certificate = certificate_of(subject.dump())
    if name is None:
        with pytest.raises(NoPrincipal, match="no rule"):
            certified_principal(certificate, mapping_rules(rules))
    else:
        assert certified_principal(certificate, mapping_rules(rules)) == f"User:{name}"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("NONE", "'NONE' does not begin with a rule"),
        ("DEFAULT,RULE:a", "'RULE:a' does not begin"),
        ("RULE:(/b/", r"'\(' is no regular expression"),
        ("RULE:a/b/X", "'RULE:a/b/X' does not begin"),
    ],
)
def test_rules_that_there_are_not(rules: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mapping_rules(rules)


def test_letters_and_digits_are_those_of_java() -> None:
    for rules in (r"RULE:CN=\w+/x/", r"RULE:CN=\d+/x/"):
        certificate = certificate_of(Name.build({"common_name": "\u0663\u0430"}).dump())
        with pytest.raises(NoPrincipal):
            certified_principal(certificate, mapping_rules(rules))


def test_a_subject_that_cannot_be_read_is_nobody() -> None:
    with pytest.raises(NoPrincipal, match="cannot be read"):
        certified_principal(b"no certificate", mapping_rules("DEFAULT"))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1"),
        ("2001:db8::ff00:42", "2001:db8:0:0:0:0:ff00:42"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("?", "?"),
    ],
)
def test_addresses_are_written_as_java_does(host: str, expected: str) -> None:
    assert java_address(host) == expected


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("authorizer.class.path=/a", r"authorizer\.class\.path is about rights"),
        ("authorizer.config=/a", r"authorizer\.config is about rights"),
        ("super.users=User:a", r"super\.users is about rights, which are not checked"),
        ("allow.everyone.if.no.acl.found=true", r"acl\.found is about rights"),
        ("authorizer.class.name=com.acme.Ours", r"com\.acme\.Ours needs authorizer\.class\.path"),
        ("super.users=alice", "allowed is principals such as User:admin"),
        ("super.users=User:a;;b", "allowed is principals such as User:admin"),
        ("ssl.principal.mapping.rules=RULE:(/a/", "allowed is DEFAULT and RULE:"),
        ("ssl.principal.mapping.rules=NONE", "allowed is DEFAULT and RULE:"),
    ],
)
def test_settings_that_cannot_be_are_refused(override: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        load_settings(overrides=[override], environment={})


@pytest.mark.parametrize(
    ("name", "override", "reason"),
    [
        (KAFKAS_OWN, "authorizer.class.path=/a", f"class.path is about .* {KAFKAS_OWN} is Kafka's"),
        (KAFKAS_OWN, "authorizer.config=/a", "config is about an authorizer of the brokers' own"),
        ("a.B", "allow.everyone.if.no.acl.found=true", r"say it to a\.B in authorizer\.config"),
    ],
)
def test_settings_of_authorizers_go_together(name: str, override: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        load_settings(overrides=[f"authorizer.class.name={name}", override], environment={})


def test_super_users_are_separated_by_semicolons() -> None:
    given = load_settings(
        overrides=[
            f"authorizer.class.name={KAFKAS_OWN}",
            "super.users=User:CN=a,O=b; User:c;",
        ],
        environment={},
    )
    assert given.super_user_principals == {"User:CN=a,O=b", "User:c"}
