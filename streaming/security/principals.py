"""Under which name somebody is known to the authorizer (DefaultKafkaPrincipalBuilder)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from asn1crypto.core import AbstractString, Any, ObjectIdentifier, Sequence, SequenceOf, SetOf
from asn1crypto.x509 import Certificate

from streaming.security.acls import Client
from streaming.security.mapping_rules import MappingRule

ANONYMOUS = "User:ANONYMOUS"
"""Who did not say who it is."""

STRANGER = Client(ANONYMOUS, "?")
"""Somebody of whom nothing is known yet."""

_SPECIAL = re.compile(r'[,=+<>#;"\\]')
_SHORT_NAMES = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""The attributes that have a name in RFC 2253; all others are written as numbers."""


class _Attribute(Sequence):  # type: ignore[misc]
    """An attribute as it is: asn1crypto's own class wants the type of value that is usual."""

    _fields = [("type", ObjectIdentifier), ("value", Any)]  # noqa: RUF012 - it writes there


class _Part(SetOf):  # type: ignore[misc]
    _child_spec = _Attribute


class _Subject(SequenceOf):  # type: ignore[misc]
    _child_spec = _Part


class NoPrincipal(Exception):
    """A certificate's name stands for nobody; the message says why."""


def user_principal(name: str) -> str:
    """Return the principal of a user."""
    return f"User:{name}"


def distinguished_name(certificate: bytes) -> str:
    """Return a certificate's (DER) subject as Java writes it (X500Principal.getName, RFC 2253)."""
    subject = _Subject.load(Certificate.load(certificate).subject.dump())
    return ",".join("+".join(map(_attribute, part)) for part in reversed(list(subject)))


def _attribute(attribute: _Attribute) -> str:
    oid, value = attribute["type"].dotted, attribute["value"].parse()
    short = _SHORT_NAMES.get(oid)
    if short is None or not isinstance(value, AbstractString):
        return f"{oid if short is None else short}=#{value.dump().hex()}"
    text = _SPECIAL.sub(r"\\\g<0>", value.native).replace("\0", r"\00")
    without = text.rstrip(" ")
    inner = without.lstrip(" ")
    before, after = len(without) - len(inner), len(text) - len(without)
    return f"{short}=" + "\\ " * before + inner + "\\ " * after


def certified_principal(certificate: bytes, rules: Iterable[MappingRule]) -> str:
    """Return the principal of who showed a certificate (DER); raises NoPrincipal when no rule is
    about it or its subject cannot be read.
    """
    try:
        name = distinguished_name(certificate)
    except (ValueError, TypeError) as error:
        raise NoPrincipal(f"the subject of a certificate cannot be read: {error}") from error
    for rule in rules:
        mapped = rule.apply(name)
        if mapped is not None:
            return user_principal(mapped)
    raise NoPrincipal(f"no rule of ssl.principal.mapping.rules is about {name!r}")


def java_address(host: str) -> str:
    """Return an IP address as Java writes it (InetAddress.getHostAddress), by which access control
    lists name hosts: IPv6 without ::, IPv4 within it by itself.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(part, 16):x}" for part in address.exploded.split(":"))
