"""Passwords that Kafka 3.9's own encoder has encoded."""

from __future__ import annotations

import pytest

from streaming.security.encoded_passwords import WrongSecret, decoded
from tests.fixtures.encoded_passwords import BY_CBC, BY_GCM, PASSWORD, SECRET


def changed(text: str, **parts: str) -> str:
    """Return an encoded password that says something else."""
    said = dict(one.split(":", 1) for one in text.split(","))
    return ",".join(f"{name}:{value}" for name, value in {**said, **parts}.items())


@pytest.mark.parametrize("text", [BY_CBC, BY_GCM])
def test_a_password_is_what_it_was(text: str) -> None:
    assert decoded(text, [SECRET]) == PASSWORD
    assert decoded(text, ["another", SECRET]) == PASSWORD


@pytest.mark.parametrize("text", [BY_CBC, BY_GCM, changed(BY_CBC, passwordLength="8")])
@pytest.mark.parametrize("secrets", [(), ("another",), ("another", "one more")])
def test_with_another_secret_it_is_not_told(text: str, secrets: tuple[str, ...]) -> None:
    with pytest.raises(WrongSecret, match="it is encoded with a secret that is not known"):
        decoded(text, secrets)


def test_what_has_another_length_is_no_password() -> None:
    """Padding fits by chance once in 256 times."""
    with pytest.raises(WrongSecret):
        decoded(changed(BY_CBC, passwordLength="6"), [SECRET])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it says no cipherAlgorithm"),
        ("plain", "it says no cipherAlgorithm"),
        (changed(BY_CBC, cipherAlgorithm="DES/CBC/PKCS5Padding"), "DES/CBC/PKCS5Padding is none "),
        (changed(BY_CBC, keyFactoryAlgorithm="PBEWithMD5AndDES"), "PBEWithMD5AndDES is none of "),
        (changed(BY_CBC, keyLength="many"), "invalid literal"),
        (changed(BY_CBC, salt="?"), "characters|base64"),
        (BY_CBC.replace("salt:", "sugar:"), "it says no salt"),
    ],
)
def test_what_cannot_be_read_is_told(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        decoded(text, [SECRET])
    assert not isinstance(refused.value, WrongSecret)
