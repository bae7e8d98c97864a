"""Who may ask what is about groups and transactions (KafkaApis)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from state.protocol_errors import ProtocolError
from streaming.gateway.operations import NOT_ASKED
from streaming.gateway.rights.asked import (
    Amended,
    Asked,
    Refused,
    Rule,
    Verdict,
    each,
    split,
    then,
)
from streaming.security.acls import Operation, ResourceType
from streaming.wire import since
from streaming.wire.schema_codec import Body

_DENIED: Body = {"error_code": ProtocolError.GROUP_AUTHORIZATION_FAILED}
_KEY_TYPES: Mapping[int, tuple[ResourceType, ProtocolError]] = {
    0: (ResourceType.GROUP, ProtocolError.GROUP_AUTHORIZATION_FAILED),
    1: (ResourceType.TRANSACTIONAL_ID, ProtocolError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}
"""org.apache.kafka.common.requests.FindCoordinatorRequest.CoordinatorType."""


def _may(asked: Asked, operation: Operation, group: str | None) -> bool:
    return asked.may(operation, ResourceType.GROUP, group)


def member(**fields: Any) -> Rule:
    """Return the rule that a request is for who may read its group; fields: those of the response
    that refuses it, beside the error.
    """

    def rule(asked: Asked) -> Verdict:
        return None if _may(asked, Operation.READ, asked.group) else Refused(_DENIED | fields)

    return rule


def join(asked: Asked) -> Verdict:
    """Let who may read a group join it."""
    nothing_chosen = None if asked.version >= since.JOIN_GROUP_NULL_PROTOCOL else ""
    return member(
        generation_id=-1,
        protocol_type=None,
        protocol_name=nothing_chosen,
        leader="",
        member_id="",
        members=[],
    )(asked)


def find_coordinator(asked: Asked) -> Verdict:
    """Let who may describe a group or a transactional id."""
    body = asked.body
    kind = _KEY_TYPES.get(body.get("key_type", 0))
    if kind is None:
        return None  # there is no such coordinator, and that is what is answered
    resource_type, error = kind
    nobody = {"error_code": error, "error_message": None, "node_id": -1, "host": "", "port": -1}

    def permitted(key: Any) -> bool:
        return asked.may(Operation.DESCRIBE, resource_type, key)

    if asked.version < since.FIND_COORDINATOR_MANY_KEYS:
        return None if permitted(body["key"]) else Refused(nobody)
    return each(
        asked, "coordinator_keys", permitted, "coordinators", lambda key: nobody | {"key": key}
    )


def describe_groups(asked: Asked) -> Verdict:
    """Let who may describe a group, and say what it may do with it besides."""
    verdict = each(
        asked,
        "groups",
        lambda group: _may(asked, Operation.DESCRIBE, str(group)),
        "groups",
        lambda group: (
            _DENIED
            | dict.fromkeys(("group_state", "protocol_type", "protocol_data"), "")
            | {"group_id": group, "members": [], "authorized_operations": NOT_ASKED}
        ),
    )

    def with_operations(answer: Body) -> Body:
        return answer | {"groups": [_with_operations(asked, one) for one in answer["groups"]]}

    wanted = asked.body.get("include_authorized_operations", False)
    return then(verdict, with_operations) if wanted else verdict


def _with_operations(asked: Asked, group: Body) -> Body:
    if group["error_code"] != ProtocolError.NONE:
        return group
    known = asked.operations(ResourceType.GROUP, group["group_id"])
    return group | {"authorized_operations": known}


def list_groups(asked: Asked) -> Verdict:
    """Name the groups that the client may describe, all to who may describe the cluster."""
    if asked.may_with_cluster(Operation.DESCRIBE, told=False):
        return None

    def named(group: Body) -> bool:
        kind = ResourceType.GROUP
        return asked.may(Operation.DESCRIBE, kind, group["group_id"], told=False)

    return then(None, lambda answer: answer | {"groups": [*filter(named, answer["groups"])]})


def delete_groups(asked: Asked) -> Verdict:
    """Let who may delete a group."""
    return each(
        asked,
        "groups_names",
        lambda group: _may(asked, Operation.DELETE, str(group)),
        "results",
        lambda group: _DENIED | {"group_id": group},
    )


def offset_commit(asked: Asked) -> Verdict:
    """Let who may read the group commit offsets of topics that it may read."""
    if not _may(asked, Operation.READ, asked.body["group_id"]):
        return _all_refused(asked, ProtocolError.GROUP_AUTHORIZATION_FAILED)
    return _read_topics(asked)


def txn_offset_commit(asked: Asked) -> Verdict:
    """Let who may write with the transactional id, too."""
    transactional_id = asked.body["transactional_id"]
    if not asked.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return _all_refused(asked, ProtocolError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return offset_commit(asked)


def offset_delete(asked: Asked) -> Verdict:
    """Let who may delete the group delete offsets of topics that it may read.

    Whatever is wrong with the group is told instead of refused topics, even if all are
    (OffsetDeleteResponse.Builder.merge).
    """
    if not _may(asked, Operation.DELETE, asked.body["group_id"]):
        return Refused(_DENIED | {"topics": []})
    kept, denied = split(asked.body["topics"], lambda one: _may_read(asked, one))
    refused = [_topic_refused(one, ProtocolError.TOPIC_AUTHORIZATION_FAILED) for one in denied]

    def with_refused(answer: Body) -> Body:
        if answer["error_code"] != ProtocolError.NONE:
            return answer
        return answer | {"topics": [*answer["topics"], *refused]}

    return Amended(asked.body | {"topics": kept}, with_refused) if refused else None


def _read_topics(asked: Asked) -> Verdict:
    return each(
        asked,
        "topics",
        lambda one: _may_read(asked, one),
        "topics",
        lambda one: _topic_refused(one, ProtocolError.TOPIC_AUTHORIZATION_FAILED),
    )


def _may_read(asked: Asked, topic: Body) -> bool:
    return asked.may_with_topic(Operation.READ, topic["name"])


def _all_refused(asked: Asked, error: ProtocolError) -> Verdict:
    return Refused({"topics": [_topic_refused(one, error) for one in asked.body["topics"]]})


def _topic_refused(topic: Body, error: ProtocolError) -> Body:
    numbers = [one["partition_index"] for one in topic["partitions"]]
    return {
        "name": topic["name"],
        "partitions": [{"partition_index": one, "error_code": error} for one in numbers],
    }


def offset_fetch(asked: Asked) -> Verdict:
    """Let who may describe the group know its offsets of topics that it may describe."""
    if asked.version >= since.OFFSET_FETCH_MANY_GROUPS:
        return _offsets_of_groups(asked)
    body = asked.body
    if not _may(asked, Operation.DESCRIBE, body["group_id"]):
        error = ProtocolError.GROUP_AUTHORIZATION_FAILED
        told = asked.version < since.OFFSET_FETCH_TOP_LEVEL_ERROR
        topics = [_not_fetched(one, error) for one in body["topics"] or ()] if told else []
        return Refused(_DENIED | {"topics": topics})
    return _known_offsets(asked, body)


def _offsets_of_groups(asked: Asked) -> Verdict:
    """Judge each group of several by itself."""
    groups, denied = split(
        asked.body["groups"], lambda one: _may(asked, Operation.DESCRIBE, one["group_id"])
    )
    refused = [_DENIED | {"group_id": one["group_id"], "topics": []} for one in denied]
    if not groups:
        return Refused({"groups": refused})
    judged = [_known_offsets(asked, one) for one in groups]  # a group may be there twice
    if not refused and not any(judged):
        return None

    def amend(answer: Body) -> Body:
        pairs = zip(judged, answer["groups"], strict=True)
        return answer | {"groups": [_amended(*pair) for pair in pairs] + refused}

    may_ask = [_asked_of(*pair) for pair in zip(judged, groups, strict=True)]
    return Amended(asked.body | {"groups": may_ask}, amend)


def _asked_of(judged: Amended | None, group: Body) -> Body:
    return group if judged is None or judged.request is None else judged.request


def _amended(judged: Amended | None, group: Body) -> Body:
    return group if judged is None or judged.amend is None else judged.amend(group)


def _known_offsets(asked: Asked, group: Body) -> Amended | None:
    """Judge what is asked of one group whose offsets may be known: of all topics if it names none.

    Where nothing may be asked, nothing is: whether this node coordinates the group is answered.
    """

    def known(topic: Body, *, told: bool = False) -> bool:
        return asked.may_with_topic(Operation.DESCRIBE, topic["name"], told=told)

    if group["topics"] is None:
        return Amended(None, lambda answer: answer | {"topics": [*filter(known, answer["topics"])]})
    topics, denied = split(group["topics"], lambda one: known(one, told=True))
    if not denied:
        return None
    refused = [_not_fetched(one, ProtocolError.TOPIC_AUTHORIZATION_FAILED) for one in denied]

    def beside(answer: Body) -> Body:
        # A whole refusal has no topics, and version 0 and 1 no error for it.
        there = answer.get("error_code", ProtocolError.NONE) == ProtocolError.NONE
        return answer | {"topics": answer["topics"] + refused} if there else answer

    return Amended(group | {"topics": topics}, beside)


def _not_fetched(topic: Body, error: ProtocolError) -> Body:
    nothing = {
        "committed_offset": -1,
        "committed_leader_epoch": -1,
        "metadata": "",
        "error_code": error,
    }
    numbers = topic["partition_indexes"]
    return {
        "name": topic["name"],
        "partitions": [nothing | {"partition_index": one} for one in numbers],
    }
