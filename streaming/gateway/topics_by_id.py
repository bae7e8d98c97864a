"""Topics that requests name by their id."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from state.topic_ids import topic_id_to_text
from streaming.gateway.calls import Call
from streaming.gateway.ports import ReplyBody
from streaming.image.cluster_image import ClusterImage
from streaming.wire import since
from streaming.wire.schema_codec import Body


def name_of(image: ClusterImage | None, topic_id: bytes) -> str:
    """Return the name of the topic with an id, "" when nobody knows it."""
    text = topic_id_to_text(topic_id)
    return "" if image is None or text is None else image.topic_name(text) or ""


def fetched_topic(call: Call, topic: Body, image: ClusterImage | None) -> str:
    """Return the name of a topic that a Fetch asks for, "" when nobody knows its id."""
    if call.version < since.FETCH_TOPIC_IDS:
        return str(topic["topic"])
    topic_id = topic["topic_id"]
    return "" if topic_id is None else name_of(image, topic_id.bytes)


async def reply_by_id(
    name: str,
    ask: Callable[[str], Awaitable[ReplyBody]],
    *,
    is_unknown: Callable[[ReplyBody], bool],
    find_name: Callable[[], str],
) -> tuple[str, ReplyBody]:
    """Return the name of a topic that is asked about by its id, and the reply; name and what is
    asked under are "" when nobody knows the id.

    It is looked up again behind the answer that nobody knows it: a job that has started again sends
    an image without its last batch, which runs again before anything is answered. Neither a leader
    that gets UNKNOWN_TOPIC_ID (Partition's handleAlterPartitionError) nor Java's Admin client asks
    again.
    """
    reply = await ask(name)
    if name:
        return name, reply
    name = find_name()
    return name, await ask(name) if name and is_unknown(reply) else reply
