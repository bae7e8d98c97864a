"""Who connects to us, found out by a class of the brokers' own, in a JVM: their callback handler
behind Kafka's own server side of a mechanism (KIP-86, SaslServerAuthenticator).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from streaming.embedded.java_class import JavaClass, MadeOf, shared_jvm
from streaming.embedded.jvm import JvmFailed, KeptObject
from streaming.security.broker_configs import broker_configs, login_context
from streaming.security.identity import Identity
from streaming.security.java_verdicts import finding_out
from streaming.security.principals import user_principal

HANDLER = "org.apache.kafka.common.security.auth.AuthenticateCallbackHandler"
_LIFETIME = "CREDENTIAL.LIFETIME.MS"
"""SaslInternalConfigs.CREDENTIAL_LIFETIME_MS_SASL_NEGOTIATED_PROPERTY_KEY (KIP-368)."""
_THREADS = ThreadPoolExecutor(4, "java-logins")


class JavaLogins:
    """Has one callback handler for one mechanism of one listener."""

    def __init__(self, class_: JavaClass, listener: str, mechanism: str) -> None:
        """class_: its config is a broker's properties."""
        self._class = class_
        self._listener = listener
        self._mechanism = mechanism
        self._jvm = shared_jvm(class_.path, class_.options)
        self._servers = MadeOf(self._jvm, class_.name, [HANDLER], self._configured)

    def check(self) -> None:
        """Make and configure the handler now; raises ClassUnusable."""
        self._servers.check()

    def close(self) -> None:
        """End the JVM, which otherwise ends with this process; who asks again has another one."""
        self._jvm.close()

    def server(self) -> JavaServer:
        """Return what finds out who one client is."""
        return JavaServer(self)

    def java_server(self) -> KeptObject:
        """Return Java's, of Kafka's own class; to be called `with asked()`."""
        packages, create = self._servers.get()
        made = create()
        if made is None:
            raise JvmFailed(f"Kafka's classes have no server for {self._mechanism}")
        return KeptObject(packages, made)

    def _configured(self, handler: Any) -> tuple[Any, Callable[[], Any]]:
        """Return a JVM's packages, and what makes one server after the other in it."""
        packages = self._jvm.packages()
        config = broker_configs(self._jvm, self._class.config, self._listener)
        context = login_context(self._jvm, config, self._listener, self._mechanism)
        handler.configure(config, self._mechanism, context.configurationEntries())
        create = packages.javax.security.sasl.Sasl.createSaslServer
        return packages, partial(create, self._mechanism, "kafka", self._listener, config, handler)


class JavaServer:
    """Finds out who one client is."""

    def __init__(self, logins: JavaLogins) -> None:
        self._logins = logins
        self._server: KeptObject | None = None
        self.identity: Identity | None = None

    async def respond(self, token: bytes) -> bytes:
        """Return the answer to what the client said; raises Refused and Undecided."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_THREADS, self._answer, token)

    def _answer(self, token: bytes) -> bytes:
        with finding_out():
            if self._server is None:
                self._server = self._logins.java_server()
            server = self._server.java
            answer = bytes(server.evaluateResponse(token) or b"")
            if server.isComplete():
                end_ms = server.getNegotiatedProperty(_LIFETIME)
                name = str(server.getAuthorizationID())
                self.identity = Identity(
                    user_principal(name), end_ms=end_ms, java_server=self._server
                )
            return answer
