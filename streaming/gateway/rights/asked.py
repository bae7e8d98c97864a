"""A request as the rules of who may ask it see it, and what they say."""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from state.protocol_errors import ProtocolError
from streaming.gateway.calls import shortened
from streaming.gateway.ports import ClusterView
from streaming.gateway.topics_by_id import name_of
from streaming.image.cluster_image import ClusterImage
from streaming.security.acls import CLUSTER_NAME, Client, Operation, ResourceType
from streaming.security.authorizer import Authorizer
from streaming.wire.apis import APIS
from streaming.wire.passing import RequestPrefix
from streaming.wire.requests import Request, decode_by_schema
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

T = TypeVar("T")

Amend: TypeAlias = Callable[[Body], Body]
"""Makes of an answer what a client may know of it, and what it has to know besides."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing of a request may be asked; body: of the response."""

    body: Body


@dataclass(frozen=True, slots=True)
class Amended:
    """What may be asked of a request, None for all of it, and what is then made of the answer."""

    request: Body | None
    amend: Amend


Verdict: TypeAlias = Refused | Amended | None
"""None: the request may be asked as it is."""

CLUSTER_DENIED: Body = {
    "error_code": ProtocolError.CLUSTER_AUTHORIZATION_FAILED,
    "error_message": "Cluster authorization failed.",
}
TOPIC_DENIED: Body = {
    "error_code": ProtocolError.TOPIC_AUTHORIZATION_FAILED,
    "error_message": "Topic authorization failed.",
}


@dataclass(frozen=True)
class Asked:
    """One request of a client who may not do everything, read when a rule needs more than its
    prefix: `request` and `body` raise UnsupportedVersion and MalformedFrame.
    """

    prefix: RequestPrefix
    frame: bytes = field(repr=False)
    client: Client
    authorizer: Authorizer
    view: ClusterView
    counters: Counter[str]

    @property
    def version(self) -> int:
        """The request's version, and so the response's."""
        return self.prefix.api_version

    @functools.cached_property
    def request(self) -> Request:
        """The request by its schema."""
        return decode_by_schema(self.frame)

    @property
    def body(self) -> Body:
        """What is asked."""
        return self.request.body

    @property
    def image(self) -> ClusterImage | None:
        """The cluster as decided so far."""
        return self.view.image()

    def may(
        self,
        operation: Operation,
        resource_type: ResourceType,
        name: str | None,
        *,
        told: bool = True,
    ) -> bool:
        """Return whether the client may do something; told: whether a refusal is worth a line in
        the log, which says it as Kafka's authorizer does, and counts.
        """
        permitted = self.authorizer.permits(self.client, operation, resource_type, name or "")
        if told and not permitted:
            asked = APIS[self.prefix.api_key].name
            done = operation.name.title().replace("_", "")
            line = (
                f"Principal = {self.client.principal} is Denied Operation = {done} from"
                f" host = {self.client.host} on resource = {resource_type.value}:LITERAL:{name} for"
                f" request = {asked}"
            )
            logger.info("%s", shortened(_in_one_line(line)))
            self.counters["operations_denied"] += 1
        return permitted

    def may_with_cluster(self, operation: Operation, *, told: bool = True) -> bool:
        """Return whether the client may do something with the cluster."""
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME, told=told)

    def may_with_topic(self, operation: Operation, name: str | None, *, told: bool = True) -> bool:
        """Return whether the client may do something with a topic."""
        return self.may(operation, ResourceType.TOPIC, name, told=told)

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with an id, None when nobody knows it."""
        return name_of(self.image, topic_id) or None


def _in_one_line(text: str) -> str:
    """Return a text with what cannot be printed written as in Python: clients choose names."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


Rule: TypeAlias = Callable[[Asked], Verdict]
"""Says whether a request may be asked."""


def each(
    asked: Asked,
    items: str,
    permitted: Callable[[Body], bool],
    answers: str,
    refusal: Callable[[Body], Body],
) -> Verdict:
    """Judge a request item by item: those that are refused are answered beside the others.

    items, answers: the fields that have them in request and response; refusal: answers one.
    """
    kept, denied = split(asked.body[items] or (), permitted)
    refused = [refusal(one) for one in denied]
    if not refused:
        return None
    if not kept:
        return Refused({answers: refused})
    return Amended(
        asked.body | {items: kept}, lambda answer: answer | {answers: [*answer[answers], *refused]}
    )


def split(items: Iterable[T], permitted: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Return those that are permitted, and the others."""
    kept: list[T] = []
    denied: list[T] = []
    for one in items:
        (kept if permitted(one) else denied).append(one)
    return kept, denied


def then(verdict: Verdict, amend: Amend) -> Verdict:
    """Return a verdict by which the answer to what may be asked is amended first."""
    if isinstance(verdict, Refused):
        return verdict
    if verdict is None:
        return Amended(None, amend)
    after = verdict.amend
    return Amended(verdict.request, lambda answer: after(amend(answer)))
