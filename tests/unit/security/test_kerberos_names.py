"""What principals of Kerberos are called, by the rules that brokers have."""

from __future__ import annotations

import pytest

from streaming.errors import ConfigurationError
from streaming.security.kerberos.names import NoName, name_rules, short_name
from streaming.settings_loader import load_settings

RULES = "sasl.kerberos.principal.to.local.rules"


def named(rules: str, principal: str) -> str:
    return short_name(name_rules(rules), principal, "REALM.COM")


@pytest.mark.parametrize(
    ("rules", "principal", "name"),
    [
        ("DEFAULT", "alice@REALM.COM", "alice"),
        ("DEFAULT", "kafka/host@REALM.COM", "kafka"),
        (r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g, DEFAULT", "App.web@REALM.COM", "web"),
        (r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g,DEFAULT", "App.web/host@REALM.COM", "App.web"),
        (r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g,DEFAULT", "App.web/host@OTHER.COM", "web"),
        ("RULE:[1:$1]", "Alice@OTHER.COM", "Alice"),
        ("RULE:[1:$1]/L", "Alice@OTHER.COM", "alice"),
        ("RULE:[1:$1]/U", "Alice@OTHER.COM", "ALICE"),
        ("RULE:[2:$1-$2-$0]", "kafka/host@REALM.COM", "kafka-host-REALM.COM"),
        ("RULE:[1:$1]s/a/x/", "banana@REALM.COM", "bxnana"),
        ("RULE:[1:$1]s/a/x/g", "banana@REALM.COM", "bxnxnx"),
        ("RULE:[1:$1]s/a//L", "banana@REALM.COM", "bnana"),
        ("RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//,RULE:[1:$1]/U", "eve@OTHER.COM", "eve"),
        ("RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//,RULE:[1:$1]/U", "eve@REALM.COM", "EVE"),
        ("RULE:[1:fixed]", "anybody@REALM.COM", "fixed"),
    ],
)
def test_the_first_rule_that_fits_counts(rules: str, principal: str, name: str) -> None:
    assert named(rules, principal) == name


@pytest.mark.parametrize(
    ("rules", "principal", "reason"),
    [
        ("DEFAULT", "alice@OTHER.COM", "no rule of sasl.kerberos.principal.to.local.rules is"),
        ("RULE:[1:$1]", "kafka/host@REALM.COM", "no rule of"),
        ("RULE:[1:$1@$0],DEFAULT", "alice@REALM.COM", "which is not short"),
        ("RULE:[1:$1$2]", "alice@REALM.COM", "asks for part 2"),
        ("DEFAULT", "alice", "no principal with a realm"),
        ("DEFAULT", "a/b/c@REALM.COM", "no principal with a realm"),
    ],
)
def test_who_has_no_name_is_told_of(rules: str, principal: str, reason: str) -> None:
    with pytest.raises(NoName, match=reason):
        named(rules, principal)


@pytest.mark.parametrize(
    "rules",
    [
        "",
        "default",
        "DEFAULT/L",
        "DEFAULT,",
        "rule:[1:$1]",
        "RULE:[:$1]",
        "RULE:[1:$1/L",
        "RULE:[1:$1]/l",
        "RULE:[1:$1]/LU",
        "RULE:[2:$1](ABC.*)s/ABC/XYZ/L/g",
        "RULE:[1:$1]([)s/a/b/",
    ],
)
def test_rules_that_are_none_are_refused_before_the_start(rules: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(overrides=[f"{RULES}={rules}"], environment={})
    assert str(caught.value).startswith(f"{RULES} = {rules!r} in --set is not allowed")
    assert "allowed is DEFAULT and RULE:[n:string](pattern)" in str(caught.value)
