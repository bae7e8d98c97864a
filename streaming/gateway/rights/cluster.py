"""Who may ask what is about the cluster as a whole (KafkaApis, AclApis)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from state.protocol_errors import ProtocolError
from streaming.gateway.rights.asked import CLUSTER_DENIED, Asked, Refused, Rule, Verdict, then
from streaming.security.acls import CLUSTER_NAME, Operation, ResourceType
from streaming.wire.schema_codec import Body

_ERROR: Body = {"error_code": ProtocolError.CLUSTER_AUTHORIZATION_FAILED}

Refusal: TypeAlias = Callable[[Body], Body]
"""Makes of a request's body that of the response that refuses it."""


def needs(operation: Operation, refusal: Refusal, *, or_else: Operation | None = None) -> Rule:
    """Return the rule that a request is for who may do something with the cluster, or something
    else.
    """

    def rule(asked: Asked) -> Verdict:
        if or_else is not None and asked.may_with_cluster(or_else, told=False):
            return None
        return None if asked.may_with_cluster(operation) else Refused(refusal(asked.body))

    return rule


def refused_at_once(**fields: Any) -> Refusal:
    """Return what refuses a request with an error code; fields: others of the response."""
    return lambda _: _ERROR | fields


def refused_in_words(**fields: Any) -> Refusal:
    """Return what refuses a request with an error code and a message; fields: others."""
    return lambda _: CLUSTER_DENIED | fields


def each_user(asked: Body) -> Body:
    """Refuse AlterUserScramCredentials."""
    users = dict.fromkeys(one["name"] for one in asked["deletions"] + asked["upsertions"])
    return {"results": [CLUSTER_DENIED | {"user": user} for user in users]}


def each_election(asked: Body) -> Body:
    """Refuse ElectLeaders; before version 1 there is no error for all of it."""
    return _ERROR | {
        "replica_election_results": [
            {
                "topic": topic["topic"],
                "partition_result": [
                    CLUSTER_DENIED | {"partition_id": one} for one in topic["partitions"]
                ],
            }
            for topic in asked["topic_partitions"] or ()
        ]
    }


def each_reassignment(asked: Body) -> Body:
    """Refuse AlterPartitionReassignments, partition by partition as well: Java's client hears of
    the error by these alone (KafkaAdminClient).
    """
    return CLUSTER_DENIED | {
        "responses": [
            {
                "name": topic["name"],
                "partitions": [
                    CLUSTER_DENIED | {"partition_index": one["partition_index"]}
                    for one in topic["partitions"]
                ],
            }
            for topic in asked["topics"]
        ]
    }


def each_marker(asked: Body) -> Body:
    """Refuse WriteTxnMarkers."""
    return {
        "markers": [
            {
                "producer_id": marker["producer_id"],
                "topics": [
                    {
                        "name": topic["name"],
                        "partitions": [
                            _ERROR | {"partition_index": one} for one in topic["partition_indexes"]
                        ],
                    }
                    for topic in marker["topics"]
                ],
            }
            for marker in asked["markers"]
        ]
    }


def each_creation(asked: Body) -> Body:
    """Refuse CreateAcls."""
    return {"results": [CLUSTER_DENIED for _ in asked["creations"]]}


def each_filter(asked: Body) -> Body:
    """Refuse DeleteAcls."""
    return {"filter_results": [CLUSTER_DENIED | {"matching_acls": []} for _ in asked["filters"]]}


def each_entry(asked: Body) -> Body:
    """Refuse AlterClientQuotas."""
    return {"entries": [CLUSTER_DENIED | {"entity": one["entity"]} for one in asked["entries"]]}


def describe_cluster(asked: Asked) -> Verdict:
    """Say what the client may do with the cluster, if it asks that."""
    if not asked.body["include_cluster_authorized_operations"]:
        return None
    return then(None, lambda answer: answer | cluster_operations(asked))


def cluster_operations(asked: Asked) -> Body:
    """Return what the client may do with the cluster, if it may know that."""
    if not asked.may_with_cluster(Operation.DESCRIBE):
        return {"cluster_authorized_operations": 0}
    known = asked.operations(ResourceType.CLUSTER, CLUSTER_NAME)
    return {"cluster_authorized_operations": known}


def init_producer_id(asked: Asked) -> Verdict:
    """Let who may write with a transactional id, or without one to some topic, have an id."""
    transactional_id = asked.body["transactional_id"]
    if transactional_id is not None:
        permitted = asked.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        error = ProtocolError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    else:
        some = (Operation.WRITE, ResourceType.TOPIC)
        permitted = asked.may_with_some(*some) or asked.may_with_cluster(Operation.IDEMPOTENT_WRITE)
        error = ProtocolError.CLUSTER_AUTHORIZATION_FAILED
    if permitted:
        return None
    return Refused({"error_code": error, "producer_id": -1, "producer_epoch": -1})
