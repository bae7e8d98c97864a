"""DeleteTopics: how a request is answered, and one for a topic id that nobody knows."""

from __future__ import annotations

from state.cluster.cluster import Cluster
from state.decisions import Decision
from state.events import Event
from state.payloads.topics import DeleteTopicRequested
from state.protocol_errors import ProtocolError
from state.replies import reply
from state.reply_bodies import ControllerApi, DeleteTopicReply


def delete_topic_reply(
    event: Event, request: DeleteTopicRequested, error: ProtocolError
) -> Decision:
    """Return the reply to a request."""
    body: DeleteTopicReply = {
        "request_id": request.request_id,
        "api": ControllerApi.DELETE_TOPIC,
        "error": error,
        "topic": request.topic,
        "topic_id": request.topic_id,
    }
    return reply(event, body)


def on_delete_topic_requested(
    cluster: Cluster, event: Event, request: DeleteTopicRequested
) -> list[Decision]:
    """Answer for a topic id that nobody knows; for others the topic's slot answers."""
    active = cluster.authority.is_active
    error = ProtocolError.UNKNOWN_TOPIC_ID if active else ProtocolError.NOT_CONTROLLER
    return [delete_topic_reply(event, request, error)]
