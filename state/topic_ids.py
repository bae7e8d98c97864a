"""Ids of topics, as bytes and as znodes have them."""

from __future__ import annotations

import base64

NO_TOPIC_ID = bytes(16)


def topic_id_from_text(text: str | None) -> bytes:
    """Return the 16 bytes of a base64url topic id as znodes have it; zero bytes when the topic has
    none.

    Raises ValueError when the text is not 16 bytes in base64url without padding.
    """
    if text is None:
        return NO_TOPIC_ID
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(raw) != 16:
        raise ValueError(f"topic_id {text!r} is {len(raw)} bytes long, not 16")
    return raw


def topic_id_to_text(topic_id: bytes) -> str | None:
    """Return a topic id as znodes have it (base64url without padding), or None for the zero id."""
    if topic_id == NO_TOPIC_ID:
        return None
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()
