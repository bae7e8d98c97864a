"""Java's Kerberos, the one that brokers have, in a small JVM of this process (org.ietf.jgss).

It is asked through py4j, which Spark brings along. All calls block; any thread may make them.
"""

from __future__ import annotations

import functools
import logging
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError, Py4JJavaError

from streaming.embedded.java import find_java
from streaming.errors import HelmstreamError

_MECHANISM = "1.2.840.113554.1.2.2"
"""Kerberos among the mechanisms (RFC 1964)."""
_ACCEPT_ONLY = 2
"""GSSCredential.ACCEPT_ONLY."""
_JVM_OPTIONS = (
    "-Xmx64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djavax.security.auth.useSubjectCredsOnly=false",  # Java logs in by itself, by these entries
)
_INITIATE, _ACCEPT = "com.sun.security.jgss.initiate", "com.sun.security.jgss.accept"
_ENTRY = "{name} {{\n  com.sun.security.auth.module.Krb5LoginModule required{options};\n}};\n"
_ANSWER_S = 120.0
"""Java asks a realm's servers three times for half a minute each, unless told otherwise."""
_END_S = 30.0


class GssFailed(ConnectionError):
    """A token is not good, or no ticket can be had; the message is Java's."""


class JvmFailed(GssFailed):
    """The JVM did not start, or is gone; the next login has another one."""


class GssContext:
    """One side of one login; all that it does raises GssFailed."""

    def __init__(self, jvm: Any, context: Any) -> None:
        self._jvm = jvm
        self._context = context

    def initiate(self, token: bytes) -> bytes:
        """Return what to say to what was heard, which at first is nothing."""
        with _said_by_java():
            return bytes(self._context.initSecContext(token, 0, len(token)) or b"")

    def accept(self, token: bytes) -> bytes:
        """Return what to say to what was heard."""
        with _said_by_java():
            return bytes(self._context.acceptSecContext(token, 0, len(token)) or b"")

    @property
    def is_established(self) -> bool:
        """Whether both know each other."""
        with _said_by_java():
            return bool(self._context.isEstablished())

    @property
    def initiator(self) -> str:
        """The principal of who began, once that is known."""
        with _said_by_java():
            return str(self._context.getSrcName().toString())

    def wrap(self, message: bytes) -> bytes:
        """Return a message that nobody else can have written."""
        with _said_by_java():
            return bytes(self._context.wrap(message, 0, len(message), self._unsealed()))

    def unwrap(self, message: bytes) -> bytes:
        """Return what the other one wrapped."""
        with _said_by_java():
            return bytes(self._context.unwrap(message, 0, len(message), self._unsealed()))

    def _unsealed(self) -> Any:
        return self._jvm.org.ietf.jgss.MessageProp(0, False)


class Jgss:
    """Begins logins, with the key or the tickets of a login module."""

    def __init__(self, options: Mapping[str, str], krb5_conf: str) -> None:
        """options: of the Krb5LoginModule; krb5_conf: java.security.krb5.conf, "" for Java's."""
        self._options = options
        self._krb5_conf = krb5_conf
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._gateway: JavaGateway | None = None

    def initiator(self, service: str, host: str) -> GssContext:
        """Return our side of a login at a host's service; raises GssFailed."""
        with _said_by_java():
            jvm = self._jvm()
            jgss = jvm.org.ietf.jgss
            manager = jgss.GSSManager.getInstance()
            peer = manager.createName(f"{service}@{host}", jgss.GSSName.NT_HOSTBASED_SERVICE)
            context = manager.createContext(peer, jgss.Oid(_MECHANISM), None, 0)
            context.requestMutualAuth(True)
            return GssContext(jvm, context)

    def acceptor(self) -> GssContext:
        """Return our side of the login of somebody who comes; raises GssFailed."""
        with _said_by_java():
            jvm = self._jvm()
            manager = jvm.org.ietf.jgss.GSSManager.getInstance()
            return GssContext(jvm, manager.createContext(manager.createCredential(_ACCEPT_ONLY)))

    @functools.cached_property
    def default_realm(self) -> str:
        """The realm of who names none; raises GssFailed."""
        with _said_by_java():
            nobody = self._jvm().javax.security.auth.kerberos.KerberosPrincipal("nobody")
            return str(nobody.getRealm())

    def close(self) -> None:
        """End the JVM, which otherwise ends with this process."""
        with self._lock:
            if self._process is not None and self._gateway is not None:
                self._gateway.shutdown()
                self._process.communicate(timeout=_END_S)
            self._process = self._gateway = None

    def _jvm(self) -> Any:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            assert self._gateway is not None
            return self._gateway.jvm

    def _start(self) -> None:
        logging.getLogger("py4j").setLevel(logging.WARNING)  # it would log what tokens say
        options = [*_JVM_OPTIONS]
        if self._krb5_conf:
            options.append(f"-Djava.security.krb5.conf={self._krb5_conf}")
        with tempfile.NamedTemporaryFile("w", suffix=".jaas") as file:
            file.write(_login_modules(self._options))
            file.flush()
            port, secret, self._process = launch_gateway(
                javaopts=[*options, f"-Djava.security.auth.login.config={file.name}"],
                java_path=str(find_java().executable),
                die_on_exit=True,
                enable_auth=True,
                return_proc=True,
            )
            parameters = GatewayParameters(port=port, auth_token=secret, read_timeout=_ANSWER_S)
            self._gateway = JavaGateway(gateway_parameters=parameters)
            # Java reads the file once, after which it is gone.
            self._gateway.jvm.javax.security.auth.login.Configuration.getConfiguration()


@functools.cache
def shared_jgss(options: tuple[tuple[str, str], ...], krb5_conf: str) -> Jgss:
    """Return the one of this process for these options."""
    return Jgss(dict(options), krb5_conf)


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
def _said_by_java() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise GssFailed("; ".join(_messages(error.java_exception))) from error
    except GssFailed:
        raise
    except (Py4JError, HelmstreamError, OSError, ValueError) as error:
        raise JvmFailed(f"the JVM for Kerberos failed: {error}") from error


def _messages(exception: Any) -> Iterator[str]:
    """Yield what an exception of Java's says, and what its causes do."""
    try:
        while exception is not None:
            yield str(exception.getMessage())
            exception = exception.getCause()
    except Py4JError:
        yield "the JVM for Kerberos is gone"
