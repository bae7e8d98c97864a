"""A class of Java's that is started as brokers start their authorizer, and asked as they ask it
(KIP-504).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from streaming.embedded.java_functions import (
    BI_FUNCTION,
    FUNCTION,
    UNARY_OPERATOR,
    JavaFunctions,
)
from streaming.embedded.jvm import SmallJvm
from streaming.security.acls import Client, Operation, ResourceType
from streaming.security.authorizer import Inquiry
from streaming.security.principals import ANONYMOUS
from streaming.wire.endpoints import Endpoint, SecurityProtocol

_SERVER = "org.apache.kafka.server.authorizer"
AUTHORIZER = f"{_SERVER}.Authorizer"
_COMMON = "org.apache.kafka.common"
_START_S = 60
KEPT = 4_096
"""Of requests that look alike, and of names that are asked about alone."""
_ALLOWED = "ALLOWED"
"""org.apache.kafka.server.authorizer.AuthorizationResult; all else is a refusal."""

Alike: TypeAlias = tuple[Operation, ResourceType, bool]
"""What is asked about many names; whether a refusal is told of."""
_Like: TypeAlias = tuple[Client, str, int, int, str | None]
"""What requests of one kind have in common: all of an Inquiry but its correlation id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What an authorizer is told of the node that asks it (AuthorizerServerInfo)."""

    broker_id: int
    cluster_id: str
    inter_broker_listener: str
    endpoints: Sequence[Endpoint]


class StartedAuthorizer:
    """One of one JVM; all methods are to be called `with asked()`."""

    def __init__(self, jvm: SmallJvm, authorizer: Any, server: ServerInfo) -> None:
        self._packages = jvm.packages()
        self._functions = functions = JavaFunctions(jvm)
        self._kafka = self._packages.org.apache.kafka.common
        self._protocols = {one.listener: one.security_protocol for one in server.endpoints}
        self._start(authorizer, server)
        self._authorize = functions.in_words(
            functions.method(AUTHORIZER, "authorize", of=authorizer)
        )
        self._by_type = functions.method(AUTHORIZER, "authorizeByResourceType", of=authorizer)
        self._judge = lru_cache(KEPT)(self._make_judge)
        self._judge_some = lru_cache(KEPT)(self._make_judge_some)
        self._action = lru_cache(KEPT)(self._make_action)
        self._one = lru_cache(KEPT)(self._make_one)

    def permits(self, inquiry: Inquiry, alike: Alike, names: list[str]) -> list[bool]:
        """Return for each name whether a request's client has the right with it."""
        if len(names) == 1:
            actions = self._one(alike, names[0])
        else:
            actions = self._functions.mapped(self._action(alike), names)
        words = self._judge(_like(inquiry)).apply(inquiry.correlation_id, actions)
        return [word == _ALLOWED for word in words[1:-1].split(", ")]

    def permits_some(
        self, inquiry: Inquiry, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Return whether there may be a resource with which a request's client has the right; not
        where Kafka's classes are older than the question (2.8, KIP-679).
        """
        if self._by_type is None:
            return False
        judge = self._judge_some(_like(inquiry), operation, resource_type)
        return bool(judge.apply(inquiry.correlation_id) == _ALLOWED)

    def _start(self, authorizer: Any, server: ServerInfo) -> None:
        """Start it as a broker does, and wait until it says that it is (Authorizer.start)."""
        ends = [
            self._kafka.Endpoint(
                one.listener, self._protocol(one.security_protocol), one.host, one.port
            )
            for one in server.endpoints
        ]
        by_name = {one.listener: end for one, end in zip(server.endpoints, ends, strict=True)}
        info = self._functions.answering(
            f"{_SERVER}.AuthorizerServerInfo",
            {
                "clusterResource": self._kafka.ClusterResource(server.cluster_id or None),
                "brokerId": server.broker_id,
                "endpoints": ends,
                "interBrokerEndpoint": by_name.get(server.inter_broker_listener, ends[0]),
                "earlyStartListeners": [],
            },
        )
        java = self._packages.java.util
        started = java.HashMap(authorizer.start(info) or {})
        for future in java.ArrayList(started.values()):
            future.toCompletableFuture().get(_START_S, java.concurrent.TimeUnit.SECONDS)

    def _make_judge(self, like: _Like) -> Any:
        """Return what takes a request's correlation id and a list of actions, and returns what the
        authorizer says of each.
        """
        functions = self._functions
        in_context = functions.after(self._authorize, 0, self._context(like))
        return functions.as_interface(BI_FUNCTION, in_context)

    def _make_judge_some(
        self, like: _Like, operation: Operation, resource_type: ResourceType
    ) -> Any:
        """Return what takes a request's correlation id, and returns what the authorizer says of a
        right with some resource.
        """
        functions = self._functions
        what = (self._operation(operation), self._resource_type(resource_type))
        judge = functions.with_values(functions.in_words(self._by_type), 1, *what)
        in_context = functions.after(judge, 0, self._context(like))
        return functions.as_interface(FUNCTION, in_context)

    def _context(self, like: _Like) -> Any:
        """Return what makes a RequestContext, Kafka's own, of a correlation id."""
        client, listener, api_key, api_version, client_id = like
        functions, kafka = self._functions, self._kafka
        requests = f"{_COMMON}.requests"
        header = functions.with_values(
            functions.with_wider(functions.constructor(f"{requests}.RequestHeader", (4,)), 1),
            0,
            kafka.protocol.ApiKeys.forId(api_key),
            api_version,
            client_id,
        )
        values = [
            "",
            self._packages.java.net.InetAddress.getByName(client.host),
            java_principal(self._packages, client),
            kafka.network.ListenerName(listener),
            self._protocol(self._protocols[listener]),
        ]
        # Kafka 2.4 has six parameters, 2.5 and 2.6 seven, all later ones eight.
        context = functions.constructor(f"{requests}.RequestContext", (8, 7, 6))
        more = context.type().parameterCount() - len(values) - 1
        if more:
            values += [kafka.network.ClientInformation.EMPTY, False][:more]
        return functions.after(functions.with_values(context, 1, *values), 0, header)

    def _make_action(self, alike: Alike) -> Any:
        """Return what makes an Action of a resource's name."""
        operation, resource_type, told = alike
        functions, resource = self._functions, f"{_COMMON}.resource"
        literal = self._kafka.resource.PatternType.LITERAL
        pattern = functions.constructor(f"{resource}.ResourcePattern", (3,))
        pattern = functions.with_values(pattern, 2, literal)
        pattern = functions.with_values(pattern, 0, self._resource_type(resource_type))
        action = functions.constructor(f"{_SERVER}.Action", (5,))
        action = functions.with_values(action, 2, 1, True, told)
        action = functions.with_values(action, 0, self._operation(operation))
        return functions.as_interface(UNARY_OPERATOR, functions.after(action, 0, pattern))

    def _make_one(self, alike: Alike, name: str) -> Any:
        return self._functions.mapped(self._action(alike), [name])

    def _operation(self, operation: Operation) -> Any:
        return self._kafka.acl.AclOperation.valueOf(operation.name)

    def _resource_type(self, resource_type: ResourceType) -> Any:
        return self._kafka.resource.ResourceType.valueOf(resource_type.name)

    def _protocol(self, protocol: SecurityProtocol) -> Any:
        return self._kafka.security.auth.SecurityProtocol.valueOf(protocol.name)


def java_principal(packages: Any, client: Client) -> Any:
    """Return the principal that a builder made, which may say more than a name, or else one of
    Kafka's own; packages: of the authorizer's JVM.
    """
    if client.java_principal is not None:
        return client.java_principal.of(packages)
    made = packages.org.apache.kafka.common.security.auth.KafkaPrincipal
    principal = made(*client.principal.split(":", 1))
    principal.tokenAuthenticated(not client.proven and client.principal != ANONYMOUS)
    return principal


def _like(inquiry: Inquiry) -> _Like:
    return (
        inquiry.client,
        inquiry.listener,
        inquiry.api_key,
        inquiry.api_version,
        inquiry.client_id,
    )
