"""Who may ask what is about topics (KafkaApis, ConfigHelper)."""

from __future__ import annotations

from typing import Any

from state.protocol_errors import ProtocolError
from streaming.gateway.followers import follower_that_asks_for_epochs, follower_that_fetches
from streaming.gateway.rights.asked import (
    CLUSTER_DENIED,
    TOPIC_DENIED,
    Asked,
    Refused,
    Rule,
    Verdict,
    each,
    then,
)
from streaming.security.acls import Operation
from streaming.wire import since
from streaming.wire.config_resource import ConfigResourceType
from streaming.wire.schema_codec import Body

_CONFIGS_SINCE = 5


def create_topics(asked: Asked) -> Verdict:
    """Let who may create topics, or this one; what configs it got is for who may describe them."""
    every = asked.may_with_cluster(Operation.CREATE, told=False)
    names = {one["name"] for one in asked.body["topics"]}
    hidden = {
        name
        for name in names
        if not asked.may_with_topic(Operation.DESCRIBE_CONFIGS, name, told=False)
    }
    verdict = each(
        asked,
        "topics",
        lambda one: every or asked.may_with_topic(Operation.CREATE, one["name"]),
        "topics",
        lambda one: TOPIC_DENIED | {"name": one["name"]} | _config_error(one, hidden),
    )
    if asked.version < _CONFIGS_SINCE or not hidden:
        return verdict
    return then(
        verdict,
        lambda answer: (
            answer | {"topics": [_without_configs(one, hidden) for one in answer["topics"]]}
        ),
    )


def _config_error(topic: Body, hidden: set[str]) -> Body:
    error = ProtocolError.TOPIC_AUTHORIZATION_FAILED
    return {"topic_config_error_code": error} if topic["name"] in hidden else {}


def _without_configs(topic: Body, hidden: set[str]) -> Body:
    if topic["name"] not in hidden or topic["error_code"] != ProtocolError.NONE:
        return topic
    untold: Body = {"num_partitions": -1, "replication_factor": -1, "configs": []}
    return topic | untold | _config_error(topic, hidden)


def delete_topics(asked: Asked) -> Verdict:
    """Let who may delete a topic; an id that nobody knows now may be some topic's later."""
    if asked.version < since.DELETE_TOPICS_IDS:
        return each(
            asked,
            "topic_names",
            lambda name: asked.may_with_topic(Operation.DELETE, str(name)),
            "responses",
            lambda name: TOPIC_DENIED | {"name": name},
        )

    def name_of(one: Body) -> str | None:
        topic_id = one["topic_id"]
        name: str | None = one["name"] if topic_id is None else asked.topic_name(topic_id.bytes)
        return name

    def refusal(one: Body) -> Body:
        name, named = name_of(one), {"name": one["name"], "topic_id": one["topic_id"]}
        if name is None and one["topic_id"] is not None:
            return named | {"error_code": ProtocolError.UNKNOWN_TOPIC_ID, "error_message": None}
        by_id = one["topic_id"] is not None
        if by_id and asked.may_with_topic(Operation.DESCRIBE, name, told=False):
            named["name"] = name  # an id is no secret, the name of its topic is
        return TOPIC_DENIED | named

    def permitted(one: Body) -> bool:
        name = name_of(one)
        if name is None:
            return one["topic_id"] is None  # no topic is meant, and that is what is answered
        needed = [Operation.DELETE]
        if one["topic_id"] is not None:  # who may not know its name is told so
            needed.append(Operation.DESCRIBE)
        return all(asked.may_with_topic(operation, name) for operation in needed)

    return each(asked, "topics", permitted, "responses", refusal)


def create_partitions(asked: Asked) -> Verdict:
    """Let who may alter a topic."""
    return each(
        asked,
        "topics",
        lambda one: asked.may_with_topic(Operation.ALTER, one["name"]),
        "results",
        lambda one: TOPIC_DENIED | {"name": one["name"]},
    )


def configs(operation: Operation, answers: str) -> Rule:
    """Return the rule that a request is for who may do something with configs; answers: the
    response's field for them.
    """

    def permitted(asked: Asked, one: Body) -> bool:
        if one["resource_type"] == ConfigResourceType.TOPIC:
            return asked.may_with_topic(operation, one["resource_name"])
        return asked.may_with_cluster(operation)

    def refusal(one: Body) -> Body:
        error = TOPIC_DENIED if one["resource_type"] == ConfigResourceType.TOPIC else CLUSTER_DENIED
        named = {key: one[key] for key in ("resource_type", "resource_name")}
        return error | named | ({"configs": []} if answers == "results" else {})

    def rule(asked: Asked) -> Verdict:
        return each(asked, "resources", lambda one: permitted(asked, one), answers, refusal)

    return rule


def fetch(asked: Asked) -> Verdict:
    """Let followers, which act for the cluster, and who may read a topic."""
    by_follower = follower_that_fetches(asked.body) is not None
    acts = by_follower and asked.may_with_cluster(Operation.CLUSTER_ACTION)

    def name_of(one: Body) -> str | None:
        if asked.version < since.FETCH_TOPIC_IDS:
            return str(one["topic"])
        topic_id = one["topic_id"]
        return None if topic_id is None else asked.topic_name(topic_id.bytes)

    def permitted(one: Body) -> bool:
        name = None if by_follower else name_of(one)
        return acts if name is None else asked.may_with_topic(Operation.READ, name)

    def refusal(one: Body) -> Body:
        known = by_follower or name_of(one) is not None
        denied = ProtocolError.TOPIC_AUTHORIZATION_FAILED
        return _not_fetched(one, denied if known else ProtocolError.UNKNOWN_TOPIC_ID)

    if by_follower and not acts:  # without a topic, too: what it says of itself counts behind this
        return Refused({"responses": [*map(refusal, asked.body["topics"])]})
    return each(asked, "topics", permitted, "responses", refusal)


def list_offsets(asked: Asked) -> Verdict:
    """Let who may describe a topic."""
    return each(
        asked,
        "topics",
        lambda one: asked.may_with_topic(Operation.DESCRIBE, one["name"]),
        "topics",
        lambda one: _refused_partitions(one, "name", "partition_index"),
    )


def offsets_for_leader_epoch(asked: Asked) -> Verdict:
    """Let followers, which act for the cluster, and who may describe a topic."""
    by_follower = follower_that_asks_for_epochs(asked.request.header, asked.body) is not None
    acts = asked.may_with_cluster(Operation.CLUSTER_ACTION, told=by_follower)

    def permitted(one: Body) -> bool:
        if acts or by_follower:
            return acts
        return asked.may_with_topic(Operation.DESCRIBE, one["topic"])

    return each(
        asked,
        "topics",
        permitted,
        "topics",
        lambda one: _refused_partitions(one, "topic", "partition"),
    )


def _refused_partitions(topic: Body, name: str, number: str) -> Body:
    """Refuse each partition of a topic; name, number: the fields that name topic and partition."""
    denied = [
        {"error_code": ProtocolError.TOPIC_AUTHORIZATION_FAILED, number: one[number]}
        for one in topic["partitions"]
    ]
    return {name: topic[name], "partitions": denied}


def _not_fetched(topic: Body, error: ProtocolError) -> Body:
    nothing: dict[str, Any] = {
        "error_code": error,
        "high_watermark": -1,
        "last_stable_offset": -1,
        "log_start_offset": -1,
        "aborted_transactions": [],
        "preferred_read_replica": -1,
        "records": b"",
    }
    return {
        "topic": topic.get("topic"),
        "topic_id": topic.get("topic_id"),
        "partitions": [
            nothing | {"partition_index": one["partition"]} for one in topic["partitions"]
        ],
    }
