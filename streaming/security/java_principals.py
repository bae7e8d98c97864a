"""Who clients are, as a class of the brokers' own says, in a JVM: their principal builder
(KIP-189).
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from streaming.embedded.java_class import JavaClass, MadeOf, shared_jvm
from streaming.embedded.java_functions import JavaFunctions
from streaming.embedded.jvm import (
    JavaException,
    JvmFailed,
    KeptObject,
    SmallJvm,
    asked,
    java_class,
)
from streaming.security.acls import Client
from streaming.security.broker_configs import broker_configs
from streaming.security.identity import Identity, Refused
from streaming.security.java_verdicts import finding_out
from streaming.security.newcomers import Newcomer

logger = logging.getLogger(__name__)

_COMMON = "org.apache.kafka.common"
_AUTH = f"{_COMMON}.security.auth"
BUILDER = f"{_AUTH}.KafkaPrincipalBuilder"
_THREADS = ThreadPoolExecutor(4, "java-principals")


class JavaPrincipals:
    """Asks a class about the clients of one listener, with an object of it for each, as brokers do;
    safe from any thread.
    """

    def __init__(self, class_: JavaClass, listener: str) -> None:
        """class_: its config is a broker's properties."""
        self._class = class_
        self._listener = listener
        self._jvm = shared_jvm(class_.path, class_.options)
        self._building = MadeOf(self._jvm, class_.name, [BUILDER], self._in_jvm)

    @property
    def class_name(self) -> str:
        """The name of the class."""
        return self._class.name

    def check(self) -> None:
        """Make and configure one now; raises ClassUnusable."""
        self._building.check(lambda: self._building.get().builder())

    def close(self) -> None:
        """End the JVM, which otherwise ends with this process; who asks again has another one."""
        self._jvm.close()

    def start(self) -> None:
        """Have the JVM and the class ready soon."""
        _THREADS.submit(self._make)

    async def client(self, newcomer: Newcomer) -> Client:
        """Return who it is; raises Refused where the class says of nobody or fails, and Undecided
        while it cannot be asked.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_THREADS, self._client, newcomer)

    def _client(self, newcomer: Newcomer) -> Client:
        with finding_out("the principal builder: "):
            building = self._building.get()
            principal = building.principal(newcomer)
            if principal is None:
                raise Refused(f"{self.class_name} says that it is nobody")
            name = f"{principal.getPrincipalType()}:{principal.getName()}"
            return newcomer.known_as(name, KeptObject(building.packages, principal))

    def _make(self) -> None:
        try:
            with asked():
                self._building.get()
        except (JvmFailed, JavaException) as error:
            logger.error("the principal builder: %s; it is tried again with each client", error)

    def _in_jvm(self, _: Any) -> _Building:
        return _Building(self._jvm, self._class, self._listener)


class _Building:
    """Makes builders in one JVM, and asks them; all methods are to be called `with asked()`."""

    def __init__(self, jvm: SmallJvm, class_: JavaClass, listener: str) -> None:
        self.packages = packages = jvm.packages()
        self._jvm = jvm
        self._new = java_class(packages, class_.name)
        self._configs = broker_configs(jvm, class_.config, listener)
        self._functions = functions = JavaFunctions(jvm)
        made = functions.the_class(class_.name)
        self._is_configured, self._is_closed = (
            functions.the_class(interface).isAssignableFrom(made)
            for interface in (f"{_COMMON}.Configurable", "java.io.Closeable")
        )
        self._contexts = packages.org.apache.kafka.common.security.auth
        # With Kafka 2.0 to 2.5 it is not told of TLS (KIP-684).
        self._of_sasl = functions.constructor(f"{_AUTH}.SaslAuthenticationContext", (5, 4))
        self._address = packages.java.net.InetAddress
        self._optional = packages.java.util.Optional
        certificates = packages.java.security.cert.CertificateFactory
        self._certificates = certificates.getInstance("X.509")
        self._bytes = packages.java.io.ByteArrayInputStream
        engine = packages.javax.net.ssl.SSLContext.getDefault().createSSLEngine()
        self._unverified = engine.getSession()

    def builder(self) -> Any:
        """Return a new one (ChannelBuilders.createPrincipalBuilder)."""
        builder = self._new()
        if self._is_configured:
            builder.configure(self._configs)
        return builder

    def principal(self, newcomer: Newcomer) -> Any:
        """Return which principal one says that a client is, None where it says of nobody."""
        builder = self.builder()
        try:
            principal = builder.build(self._context(newcomer))
        finally:
            if self._is_closed:
                builder.close()
        if principal is not None and newcomer.identity is not None and newcomer.identity.by_token:
            principal.tokenAuthenticated(True)
        return principal

    def _context(self, newcomer: Newcomer) -> Any:
        """Return what a broker tells it of a client (AuthenticationContext)."""
        address, listener = self._address.getByName(newcomer.host), newcomer.listener
        protocol, identity = newcomer.protocol, newcomer.identity
        session = self._session(newcomer.certificate) if protocol.tls else None
        if identity is not None:
            given = [
                self._sasl_server(newcomer.mechanism, identity),
                self._contexts.SecurityProtocol.valueOf(protocol.name),
                address,
                listener,
                self._optional.ofNullable(session),
            ]
            return self._of_sasl.invokeWithArguments(given[: self._of_sasl.type().parameterCount()])
        if session is not None:
            return self._contexts.SslAuthenticationContext(session, address, listener)
        return self._contexts.PlaintextAuthenticationContext(address, listener)

    def _sasl_server(self, mechanism: str, identity: Identity) -> Any:
        """Return the one that found out who it is, or one that says the same."""
        if identity.java_server is not None:
            return identity.java_server.of(self.packages)
        said = {
            "getMechanismName": mechanism,
            "getAuthorizationID": identity.authorization_id,
            "isComplete": True,
        }
        return self._functions.answering("javax.security.sasl.SaslServer", said)

    def _session(self, certificate: bytes | None) -> Any:
        """Return one of TLS that knows a certificate; without one it raises what Java does."""
        if certificate is None:
            return self._unverified
        shown = self._certificates.generateCertificate(self._bytes(certificate))
        said = {
            "getPeerPrincipal": shown.getSubjectX500Principal(),
            "getPeerCertificates": self._jvm.array("java.security.cert.Certificate", [shown]),
        }
        return self._functions.answering("javax.net.ssl.SSLSession", said)
