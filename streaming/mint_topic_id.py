"""Mints topic ids where events are made: what decides must not draw them."""

from __future__ import annotations

import uuid

from state.topic_ids import topic_id_to_text

_RESERVED_IDS = frozenset({0, 1})


def mint_topic_id() -> str:
    """Return a random topic id (version 4) in base64url; never 0 or 1, which are reserved, and
    without a leading '-', which command lines would read as an option (Uuid.randomUuid).
    """
    while True:
        topic_id = uuid.uuid4()
        text = topic_id_to_text(topic_id.bytes)
        if text is not None and topic_id.int not in _RESERVED_IDS and not text.startswith("-"):
            return text
