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
from streaming.security.acls import CLUSTER_NAME, SUPPORTED, Client, Operation, ResourceType
from streaming.security.authorizer import Authorizer, Inquiry, Right, operation_bits
from streaming.wire.apis import APIS
from streaming.wire.passing import RequestPrefix
from streaming.wire.requests import Request, client_id_of, decode_by_schema, first_text
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

T = TypeVar("T")

_LINES_MAX = 20
"""Of one request in the log."""

Amend: TypeAlias = Callable[[Body], Body]
"""Makes of an answer what a client may know of it, and what it has to know besides."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing of a request may be asked; body: of the response."""

    body: Body


@dataclass(frozen=True, slots=True)
class Amended:
    """What may be asked of a request, None for all of it, and what is then made of the answer, None
    to leave it.

    version: in which it is asked, None for the client's.
    """

    request: Body | None
    amend: Amend | None
    version: int | None = None


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

    Whatever is made of it while `is_open` is made again once its open questions are settled: what
    has to be asked for counts as refused until then. listener: the name of where it came in.
    """

    prefix: RequestPrefix
    frame: bytes = field(repr=False)
    client: Client
    listener: str
    authorizer: Authorizer
    view: ClusterView
    counters: Counter[str]
    _known: dict[Right, bool] = field(default_factory=dict, repr=False)
    _open: dict[Right, bool] = field(default_factory=dict, repr=False)
    _refused: dict[Right, None] = field(default_factory=dict, repr=False)
    _told: set[Right] = field(default_factory=set, repr=False)

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
    def group(self) -> str:
        """What a member's request begins with: its group."""
        return first_text(self.frame)

    @property
    def image(self) -> ClusterImage | None:
        """The cluster as decided so far."""
        return self.view.image()

    @property
    def is_open(self) -> bool:
        """Whether something has to be asked for."""
        return bool(self._open)

    async def settle(self) -> None:
        """Ask for what is open; raises AuthorizerFailed."""
        prefix = self.prefix
        client_id = client_id_of(self.frame)
        inquiry = Inquiry(
            self.client,
            self.listener,
            prefix.api_key,
            prefix.api_version,
            prefix.correlation_id,
            client_id,
        )
        self._known.update(await self.authorizer.ask(inquiry, self._open))
        self._open.clear()
        self._refused.clear()

    def may(
        self,
        operation: Operation,
        resource_type: ResourceType,
        name: str | None,
        *,
        told: bool = True,
    ) -> bool:
        """Return whether the client may do something; told: whether a refusal is worth a line in
        the log, and counts.
        """
        return self._has((operation, resource_type, name or ""), told=told)

    def may_with_some(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether there may be a resource with which the client may do something."""
        return self._has((operation, resource_type, None), told=False)

    def _has(self, right: Right, *, told: bool) -> bool:
        permitted = self._known.get(right)
        if permitted is None:  # a request may be about the same thing very often
            permitted = self.authorizer.permits(self.client, right)
            if permitted is None:
                self._open[right] = told or self._open.get(right, False)
                return False
            self._known[right] = permitted
        if told and not permitted:
            self._refused[right] = None
        return permitted

    def tell_refusals(self) -> None:
        """Count what was refused since this was asked last, and log the first of a request as
        Kafka's authorizer does.
        """
        for right in self._refused:
            if right not in self._told:
                self._told.add(right)
                self._tell(right)
        self._refused.clear()

    def _tell(self, right: Right) -> None:
        self.counters["operations_denied"] += 1
        if len(self._told) > _LINES_MAX:
            if len(self._told) == _LINES_MAX + 1:
                logger.info("what else this request may not ask is not written here")
            return
        operation, resource_type, name = right
        done = operation.name.title().replace("_", "")
        line = (
            f"Principal = {self.client.principal} is Denied Operation = {done} from"
            f" host = {self.client.host} on resource = {resource_type.value}:LITERAL:{name} for"
            f" request = {APIS[self.prefix.api_key].name}"
        )
        logger.info("%s", _in_one_line(shortened(line)))

    def operations(self, resource_type: ResourceType, name: str) -> int:
        """Return what the client may do with a resource, as bits (KIP-430)."""
        return operation_bits(
            operation
            for operation in SUPPORTED[resource_type]
            if self.may(operation, resource_type, name, told=False)
        )

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
    if after is None:
        return Amended(verdict.request, amend, verdict.version)
    return Amended(verdict.request, lambda answer: after(amend(answer)), verdict.version)
