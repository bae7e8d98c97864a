"""Passwords that Kafka 3.9's own encoder has encoded."""

from __future__ import annotations

import pytest

from streaming.security.encoded_passwords import WrongSecret, decoded

SECRET, PASSWORD = "s\u00e9cret", "p\u00e4ss \U0001f600"
BY_CBC = (
    "initializationVector:Pm4Z5hsamBVZ/n5NvOscFA==,keyLength:128,salt:LLCA4W4OOvwcfUEF4Xt8vmr"
    "Lun/HIVnrF5ZqUFogc2bH7LZS44Utykq1bldIQapBrpaOn74IGML1JMvESxiR/1ek//KJAuTLMhP+/YaP+tI57dU"
    "PgUHNl75Mqkc2sv0kVxK8HRD1weVKV+BCfbrDwtU3LJlAmqFUsvXyfRi8vH3cSF3pEAkwYPZptD8aAyVjlBejvU1"
    "COpoZ9XIx84lzsBrT74S6Tk8kFBb8gTEViJHK8uy8oik1QdHIJYa3bDSJdrSfeSBWxGykGYPY5ICqDCB01J9dozE"
    "MrdTXP4TRUEmiNAcGYvkkQry9XeQQvDaSe6IUtIQRKTjHPoBFzrUqAA==,keyFactoryAlgorithm:PBKDF2With"
    "HmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,passwordLength:7,encrypt"
    "edPassword:bxhLqce/krWCNJTiJ35kpA=="
)
BY_GCM = (
    "initializationVector:Vgr8bBziJui73jIc,keyLength:256,salt:eSp7lvOslOeMWodTeYOL1sx9pOTv9Sv"
    "ibSqfpSPinE8M/D1LILjA5okfkUArDnz/v5rsnXxjtxHMyyEQz1mHjjaVWRA4/FW56KlqtHssqtk0FXlf2mFTuXo"
    "UHn1JKFRaBmQG+ZTMyjqyRQTVSJJ+gbhsnzMHIURBKaIXExpF5XR8dDy0sNdCYvZmaHzVCA2Rl5O6Ck5Wwm6Zeiw"
    "bsfEQc9UKV2V+/QdUz8RaC8O4utUDQh6uM6tlFZApda7KynPdQfmzAXCvgtAkl9/gFGG+Cs2HmTjGECJ0qtYvbsM"
    "NgyunkyZhKTkkhCsVhCle9x3jhqfJqEOPYSzF8RYwXtCuSA==,keyFactoryAlgorithm:PBKDF2WithHmacSHA1"
    ",cipherAlgorithm:AES/GCM/NoPadding,authenticationTagLength:128,iterations:4096,passwordL"
    "ength:7,encryptedPassword:4UZhkYRMiuMOt3CUAR68PVLdVGtHjd6Ztyc="
)


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
