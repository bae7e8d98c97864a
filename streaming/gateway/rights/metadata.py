"""Who may know what of topics and the cluster (KafkaApis.handleTopicMetadataRequest)."""

from __future__ import annotations

from collections.abc import Iterable

from state.partitions.creation import is_legal_name
from state.protocol_errors import ProtocolError
from streaming.gateway.metadata import asked_topics
from streaming.gateway.rights.asked import Amended, Asked, Verdict, split
from streaming.gateway.rights.cluster import cluster_operations
from streaming.security.acls import Operation, ResourceType
from streaming.wire import since
from streaming.wire.schema_codec import Body

_CREATION_SINCE = 4
"""Before, all topics that are asked for are to be created."""
_OPERATIONS_SINCE = 8
_CLUSTER_OPERATIONS_UNTIL = 10
_DENIED = ProtocolError.TOPIC_AUTHORIZATION_FAILED


def metadata(asked: Asked) -> Verdict:
    """Let clients know of topics that they may describe: of others that they ask about by name they
    are refused, among all they are not named.
    """
    topics = asked_topics(asked.body, asked.version)
    verdict = _of_all(asked) if topics is None else _of_some(asked, topics)
    return _with_operations(asked, verdict)


def _of_all(asked: Asked) -> Amended | None:
    """Ask for all topics by their names, of which there may be few, where all are known."""

    def known(name: str | None) -> bool:
        return name is None or _may_describe(asked, name, told=False)

    def without_unknown(answer: Body) -> Body:
        return answer | {"topics": [one for one in answer["topics"] if known(one["name"])]}

    if asked.image is None or not asked.view.is_current():
        return Amended(None, without_unknown)
    names = asked.image.topic_names()
    topics = [{"name": name, "topic_id": None} for name in names if known(name)]
    if len(topics) == len(names):
        return None
    nothing_new = {"topics": topics, "allow_auto_topic_creation": False}
    oldest = _CREATION_SINCE if topics else since.METADATA_NO_TOPICS
    return Amended(asked.body | nothing_new, None, max(asked.version, oldest))


def _of_some(asked: Asked, topics: Iterable[Body]) -> Amended | None:
    unknown, known = split(topics, lambda one: _has_unknown_id(asked, one))
    described, denied = split(known, lambda one: _may_be_told(asked, one))
    request: Body = {}
    missing = _uncreatable(asked, described)
    if missing and not asked.view.is_current():
        # Who has the role may know of topics that are not missing.
        missing, request = set(), {"allow_auto_topic_creation": False}
    described, uncreated = split(described, lambda one: one["name"] not in missing)
    refused = [_refused(one, _DENIED) for one in denied]
    refused += [_refused(one, ProtocolError.UNKNOWN_TOPIC_OR_PARTITION) for one in uncreated]
    refused += [_refused(one, ProtocolError.UNKNOWN_TOPIC_ID) for one in unknown]
    if not refused and not request:
        return None
    oldest = _CREATION_SINCE if request else since.METADATA_NO_TOPICS if not described else 0
    return Amended(
        asked.body | {"topics": described} | request,
        lambda answer: answer | {"topics": answer["topics"] + refused},
        max(asked.version, oldest),
    )


def _has_unknown_id(asked: Asked, topic: Body) -> bool:
    """Return whether nobody here knows what topic is meant: others may, or later."""
    topic_id = topic.get("topic_id")
    return topic_id is not None and asked.topic_name(topic_id.bytes) is None


def _may_be_told(asked: Asked, topic: Body) -> bool:
    name, topic_id = topic["name"], topic.get("topic_id")
    if topic_id is not None:
        name = asked.topic_name(topic_id.bytes)
    return name is None or _may_describe(asked, name, told=True)


def _may_describe(asked: Asked, name: str, *, told: bool) -> bool:
    return asked.may_with_topic(Operation.DESCRIBE, name, told=told)


def _uncreatable(asked: Asked, topics: Iterable[Body]) -> set[str]:
    """Return the topics that there may not be, and that the client may not create by asking."""
    creates = asked.version < _CREATION_SINCE or asked.body["allow_auto_topic_creation"]
    if not creates or asked.may_with_cluster(Operation.CREATE, told=False):
        return set()
    known = asked.view.is_current()
    image = asked.image if known else None
    there = {} if image is None else image.topic_ids
    return {
        one["name"]
        for one in topics
        if one["name"] is not None
        and is_legal_name(one["name"])
        and one["name"] not in there
        and not asked.may_with_topic(Operation.CREATE, one["name"], told=known)
    }


def _refused(topic: Body, error: ProtocolError) -> Body:
    """Answer for a topic: that there is one with its id is no secret, what it is called is."""
    return {
        "error_code": error,
        "name": topic["name"],
        "topic_id": topic.get("topic_id"),
        "is_internal": False,
        "partitions": [],
    }


def _with_operations(asked: Asked, verdict: Amended | None) -> Verdict:
    """Say what the client may do with topics and the cluster, if it asks that."""
    body, version = asked.body, asked.version
    of_topics = version >= _OPERATIONS_SINCE and body["include_topic_authorized_operations"]
    of_cluster = (
        _OPERATIONS_SINCE <= version <= _CLUSTER_OPERATIONS_UNTIL
        and body["include_cluster_authorized_operations"]
    )
    if not (of_topics or of_cluster):
        return verdict

    def amend(answer: Body) -> Body:
        if of_topics:
            topics = [_with_topic_operations(asked, one) for one in answer["topics"]]
            answer = answer | {"topics": topics}
        if verdict is not None and verdict.amend is not None:
            answer = verdict.amend(answer)
        return answer | cluster_operations(asked) if of_cluster else answer

    if verdict is None:
        return Amended(None, amend)
    return Amended(verdict.request, amend, verdict.version)


def _with_topic_operations(asked: Asked, topic: Body) -> Body:
    if topic["name"] is None:
        return topic
    known = asked.operations(ResourceType.TOPIC, topic["name"])
    return topic | {"topic_authorized_operations": known}
