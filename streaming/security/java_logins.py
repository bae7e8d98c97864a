"""Who connects to us, found out by a class of the brokers' own, in a JVM: their callback handler
behind Kafka's own server side of a mechanism (KIP-86, SaslServerAuthenticator).
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

from streaming.embedded.jvm import JavaException, JvmFailed, SmallJvm, asked
from streaming.security.identity import Identity, Refused, Undecided
from streaming.security.principals import user_principal

HANDLER = "org.apache.kafka.common.security.auth.AuthenticateCallbackHandler"
_LIFETIME = "CREDENTIAL.LIFETIME.MS"
"""SaslInternalConfigs.CREDENTIAL_LIFETIME_MS_SASL_NEGOTIATED_PROPERTY_KEY (KIP-368)."""
_THREADS = ThreadPoolExecutor(4, "java-logins")


class LoginClassUnusable(Exception):
    """A callback handler cannot be made; the message says why."""


@functools.cache
def _shared_jvm(class_path: str, options: tuple[str, ...]) -> SmallJvm:
    return SmallJvm(["-Xmx256m", *options], class_path)


@dataclass(frozen=True, slots=True)
class LoginClass:
    """Which class a callback handler is.

    path: of the class, its libraries, and Kafka's; config: what it is configured with; options: of
    its JVM, which all of one path and options share.
    """

    name: str
    path: str
    config: Mapping[str, str]
    options: tuple[str, ...]


class JavaLogins:
    """Has one callback handler for one mechanism of one listener."""

    def __init__(self, class_: LoginClass, listener: str, mechanism: str) -> None:
        self._class = class_
        self._listener = listener
        self._mechanism = mechanism
        self._jvm = _shared_jvm(class_.path, class_.options)
        self._making = threading.Lock()
        self._packages: Any = None
        self._handler: Any = None

    def check(self) -> None:
        """Make and configure the handler now; raises LoginClassUnusable."""
        try:
            with asked():
                find = self._jvm.packages().java.lang.Class.forName
                if not find(HANDLER).isAssignableFrom(find(self._class.name)):
                    raise LoginClassUnusable(f"it is no {HANDLER}")
                self._made()
        except (JavaException, JvmFailed) as error:
            raise LoginClassUnusable(str(error)) from error

    def server(self) -> JavaServer:
        """Return what finds out who one client is."""
        return JavaServer(self)

    def java_server(self) -> Any:
        """Return Java's, of Kafka's own class; to be called `with asked()`."""
        handler, packages = self._made(), self._jvm.packages()
        create = packages.javax.security.sasl.Sasl.createSaslServer
        made = create(self._mechanism, "kafka", self._listener, dict(self._class.config), handler)
        if made is None:
            raise JvmFailed(f"Kafka's classes have no server for {self._mechanism}")
        return made

    def _made(self) -> Any:
        """Return the handler, made anew when the JVM is another one."""
        with self._making:
            packages = self._jvm.packages()
            if packages is not self._packages:
                kafka = packages.org.apache.kafka.common
                listener, config = kafka.network.ListenerName(self._listener), self._class.config
                load = kafka.security.JaasContext.loadServerContext
                entries = load(listener, self._mechanism, dict(config)).configurationEntries()
                for entry in entries:  # whose login modules bring Kafka's servers along
                    packages.java.lang.Class.forName(entry.getLoginModuleName())
                handler = reduce(getattr, self._class.name.split("."), packages)()
                handler.configure(dict(config), self._mechanism, entries)
                self._packages, self._handler = packages, handler
            return self._handler


class JavaServer:
    """Finds out who one client is."""

    def __init__(self, logins: JavaLogins) -> None:
        self._logins = logins
        self._server: Any = None
        self.identity: Identity | None = None

    async def respond(self, token: bytes) -> bytes:
        """Return the answer to what the client said; raises Refused and Undecided."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_THREADS, self._answer, token)

    def _answer(self, token: bytes) -> bytes:
        with _judging():
            if self._server is None:
                self._server = self._logins.java_server()
            answer = bytes(self._server.evaluateResponse(token) or b"")
            if self._server.isComplete():
                end_ms = self._server.getNegotiatedProperty(_LIFETIME)
                name = str(self._server.getAuthorizationID())
                self.identity = Identity(user_principal(name), end_ms=end_ms)
            return answer


@contextmanager
def _judging() -> Iterator[None]:
    try:
        with asked():
            yield
    except JvmFailed as error:
        raise Undecided(str(error)) from error
    except JavaException as error:
        raise Refused(str(error)) from error
