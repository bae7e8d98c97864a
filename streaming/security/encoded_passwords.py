"""Passwords in brokers' configurations as ZooKeeper has them: encrypted with a broker's secret
(org.apache.kafka.security.EncryptingPasswordEncoder).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.padding import PKCS7

SECRETS = ("password.encoder.secret", "password.encoder.old.secret")
"""Settings of a broker: its secret, and the one that it had before."""
_HASHES: Mapping[str, type[hashes.HashAlgorithm]] = {
    "PBKDF2WithHmacSHA1": hashes.SHA1,
    "PBKDF2WithHmacSHA224": hashes.SHA224,
    "PBKDF2WithHmacSHA256": hashes.SHA256,
    "PBKDF2WithHmacSHA384": hashes.SHA384,
    "PBKDF2WithHmacSHA512": hashes.SHA512,
}
"""What password.encoder.keyfactory.algorithm may be."""
_BITS_OF_A_BYTE = 8


class WrongSecret(ValueError):
    """A password was encoded with another secret."""


def decoded(text: str, secrets: Sequence[str]) -> str:
    """Return a password; secrets: with one of them it was encoded.

    Raises ValueError when it cannot be read, WrongSecret when no secret fits.
    """
    parts = dict(one.split(":", 1) for one in text.split(",") if ":" in one)
    for secret in secrets:
        try:
            return _with_secret(parts, secret)
        except WrongSecret:
            continue
        except KeyError as error:
            raise ValueError(f"it says no {error.args[0]}") from error
    raise WrongSecret("it is encoded with a secret that is not known")


def _with_secret(parts: Mapping[str, str], secret: str) -> str:
    cipher = parts["cipherAlgorithm"]
    if cipher not in _CIPHERS:
        raise ValueError(f"{cipher} is none of {', '.join(_CIPHERS)}")
    begin, data = _bytes(parts["initializationVector"]), _bytes(parts["encryptedPassword"])
    key = _key(parts, secret)
    try:
        password = _CIPHERS[cipher](key, begin, data).decode()
    except (InvalidTag, ValueError) as error:
        raise WrongSecret("it cannot be decrypted") from error
    if len(password.encode("utf-16-le")) // 2 != int(parts["passwordLength"]):
        raise WrongSecret("what it is decrypted to has another length")
    return password


def _key(parts: Mapping[str, str], secret: str) -> bytes:
    name = parts["keyFactoryAlgorithm"]
    if name not in _HASHES:
        raise ValueError(f"{name} is none of {', '.join(_HASHES)}")
    length = int(parts["keyLength"]) // _BITS_OF_A_BYTE
    salt, iterations = _bytes(parts["salt"]), int(parts["iterations"])
    return PBKDF2HMAC(_HASHES[name](), length, salt, iterations).derive(secret.encode())


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _by_cbc(key: bytes, begin: bytes, data: bytes) -> bytes:
    """Raises ValueError when it is not padded as it should be."""
    decryptor, unpadder = Cipher(AES(key), CBC(begin)).decryptor(), PKCS7(AES.block_size).unpadder()
    padded = decryptor.update(data) + decryptor.finalize()
    return unpadder.update(padded) + unpadder.finalize()


def _by_gcm(key: bytes, begin: bytes, data: bytes) -> bytes:
    """Raises InvalidTag, also where the tag has not 128 bits, as brokers' have."""
    return AESGCM(key).decrypt(begin, data, None)


_CIPHERS: Mapping[str, Callable[[bytes, bytes, bytes], bytes]] = {
    "AES/CBC/PKCS5Padding": _by_cbc,
    "AES/GCM/NoPadding": _by_gcm,
}
"""What password.encoder.cipher.algorithm may be."""
