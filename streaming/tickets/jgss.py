"""Java's Kerberos, the one that brokers have (org.ietf.jgss), in a small JVM of this process.

All calls block; any thread may make them. They raise GssFailed and JvmFailed.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from streaming.embedded.jvm import JavaException, SmallJvm, asked

_MECHANISM = "1.2.840.113554.1.2.2"
"""Kerberos among the mechanisms (RFC 1964)."""
_ACCEPT_ONLY = 2
"""GSSCredential.ACCEPT_ONLY."""
_JVM_OPTIONS = (
    "-Xmx64m",
    "-Djavax.security.auth.useSubjectCredsOnly=false",  # Java logs in by itself, by these entries
)
_INITIATE, _ACCEPT = "com.sun.security.jgss.initiate", "com.sun.security.jgss.accept"
_ENTRY = "{name} {{\n  com.sun.security.auth.module.Krb5LoginModule required{options};\n}};\n"


class GssFailed(ConnectionError):
    """A token is not good, or no ticket can be had; the message is Java's."""


class GssContext:
    """One side of one login."""

    def __init__(self, packages: Any, context: Any) -> None:
        self._packages = packages
        self._context = context

    def initiate(self, token: bytes) -> bytes:
        """Return what to say to what was heard, which at first is nothing."""
        with _asked():
            return bytes(self._context.initSecContext(token, 0, len(token)) or b"")

    def accept(self, token: bytes) -> bytes:
        """Return what to say to what was heard."""
        with _asked():
            return bytes(self._context.acceptSecContext(token, 0, len(token)) or b"")

    @property
    def is_established(self) -> bool:
        """Whether both know each other."""
        with _asked():
            return bool(self._context.isEstablished())

    @property
    def initiator(self) -> str:
        """The principal of who began, once that is known."""
        with _asked():
            return str(self._context.getSrcName().toString())

    def wrap(self, message: bytes) -> bytes:
        """Return a message that nobody else can have written."""
        with _asked():
            return bytes(self._context.wrap(message, 0, len(message), self._unsealed()))

    def unwrap(self, message: bytes) -> bytes:
        """Return what the other one wrapped."""
        with _asked():
            return bytes(self._context.unwrap(message, 0, len(message), self._unsealed()))

    def _unsealed(self) -> Any:
        return self._packages.org.ietf.jgss.MessageProp(0, False)


class Jgss:
    """Begins logins, with the key or the tickets of a login module."""

    def __init__(self, options: Mapping[str, str], krb5_conf: str) -> None:
        """options: of the Krb5LoginModule; krb5_conf: java.security.krb5.conf, "" for Java's."""
        self._entries = tempfile.NamedTemporaryFile("w", suffix=".jaas")  # noqa: SIM115 - kept
        self._entries.write(_login_modules(options))
        self._entries.flush()
        given = [*_JVM_OPTIONS, f"-Djava.security.auth.login.config={self._entries.name}"]
        if krb5_conf:
            given.append(f"-Djava.security.krb5.conf={krb5_conf}")
        self.jvm = SmallJvm(given)

    def initiator(self, service: str, host: str) -> GssContext:
        """Return our side of a login at a host's service."""
        with _asked():
            packages = self.jvm.packages()
            jgss = packages.org.ietf.jgss
            manager = jgss.GSSManager.getInstance()
            peer = manager.createName(f"{service}@{host}", jgss.GSSName.NT_HOSTBASED_SERVICE)
            context = manager.createContext(peer, jgss.Oid(_MECHANISM), None, 0)
            context.requestMutualAuth(True)
            return GssContext(packages, context)

    def acceptor(self) -> GssContext:
        """Return our side of the login of somebody who comes."""
        with _asked():
            packages = self.jvm.packages()
            manager = packages.org.ietf.jgss.GSSManager.getInstance()
            key = manager.createCredential(_ACCEPT_ONLY)
            return GssContext(packages, manager.createContext(key))

    @functools.cached_property
    def default_realm(self) -> str:
        """The realm of who names none."""
        with _asked():
            kerberos = self.jvm.packages().javax.security.auth.kerberos
            return str(kerberos.KerberosPrincipal("nobody").getRealm())

    def close(self) -> None:
        """End the JVM before this process does."""
        self.jvm.close()
        self._entries.close()


def shared_jgss(options: Mapping[str, str], krb5_conf: str) -> Jgss:
    """Return the one of this process for these options."""
    return _shared(tuple(sorted(options.items())), krb5_conf)


@functools.cache
def _shared(options: tuple[tuple[str, str], ...], krb5_conf: str) -> Jgss:
    return Jgss(dict(options), krb5_conf)


def keytab_of(options: Mapping[str, str]) -> str:
    """Return the file in which a login module has its keys, "" for none."""
    return options.get("keyTab", "").removeprefix("FILE:")


def _login_modules(options: Mapping[str, str]) -> str:
    """Return the file by which Java finds our key, for both sides of a login."""
    accepting = {**options, "isInitiator": "false", "storeKey": "true"}
    entries = {_INITIATE: options, _ACCEPT: accepting}
    return "".join(
        _ENTRY.format(name=name, options="".join(map(_option, given, given.values())))
        for name, given in entries.items()
    )


def _option(key: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'\n    {key}="{escaped}"'


@contextmanager
def _asked() -> Iterator[None]:
    try:
        with asked():
            yield
    except JavaException as error:
        raise GssFailed(str(error)) from error
