"""A class of Java's that is asked as brokers ask an authorizer of before Kafka 2.4, which they know
up to 2.8 (kafka.security.auth.Authorizer).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from streaming.embedded.java_functions import FUNCTION, UNARY_OPERATOR, JavaFunctions
from streaming.embedded.jvm import SmallJvm
from streaming.security.acls import Client, Operation, ResourceType
from streaming.security.authorizer import Inquiry
from streaming.security.started_authorizer import KEPT, Alike, java_principal

_AUTH = "kafka.security.auth"
OLDER_AUTHORIZER = f"{_AUTH}.Authorizer"
_ALLOWED = "true"


class OlderAuthorizer:
    """One of one JVM, of which no start is told; all methods are to be called `with asked()`."""

    def __init__(self, jvm: SmallJvm, authorizer: Any) -> None:
        self._packages = packages = jvm.packages()
        self._functions = functions = JavaFunctions(jvm)
        self._authorize = functions.method(OLDER_AUTHORIZER, "authorize", of=authorizer)
        of_kafka, auth = packages.org.apache.kafka.common, packages.kafka.security.auth
        self._java_operations = of_kafka.acl.AclOperation
        self._java_types = of_kafka.resource.ResourceType
        self._literal = of_kafka.resource.PatternType.LITERAL
        self._operations = getattr(auth, "Operation$").__getattr__("MODULE$")
        self._types = getattr(auth, "ResourceType$").__getattr__("MODULE$")
        self._judges = lru_cache(KEPT)(self._make_judges)

    def permits(self, inquiry: Inquiry, alike: Alike, names: list[str]) -> list[bool]:
        """Return for each name whether a client has the right with it."""
        operation, resource_type, _ = alike
        one, many = self._judges(inquiry.client, operation, resource_type)
        words = [one.apply(names[0])] if len(names) == 1 else self._functions.mapped(many, names)
        return [word == _ALLOWED for word in words]

    def permits_some(self, _: Inquiry, __: Operation, ___: ResourceType) -> bool:
        """Return False: it cannot be asked of resources that have no name."""
        return False

    def _make_judges(
        self, client: Client, operation: Operation, resource_type: ResourceType
    ) -> tuple[Any, Any]:
        """Return what takes a resource's name, and returns what the authorizer says of it: to be
        asked about one, and for a list of them.
        """
        functions = self._functions
        session = functions.constructor("kafka.network.RequestChannel$Session", (2,))
        address = self._packages.java.net.InetAddress.getByName(client.host)
        who = session.invokeWithArguments([java_principal(self._packages, client), address])
        what = self._operations.fromJava(self._java_operations.valueOf(operation.name))
        resource = functions.constructor(f"{_AUTH}.Resource", (3,))
        resource = functions.with_values(resource, 2, self._literal)
        kind = self._types.fromJava(self._java_types.valueOf(resource_type.name))
        resource = functions.with_values(resource, 0, kind)
        in_words = functions.in_words(functions.with_values(self._authorize, 0, who, what))
        judge = functions.after(in_words, 0, resource)
        one, many = (functions.as_interface(kind, judge) for kind in (FUNCTION, UNARY_OPERATOR))
        return one, many
