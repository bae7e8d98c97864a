"""Records of the outcome log; docs/data-folder.md says which there are."""

from __future__ import annotations

from typing import Any

import orjson

from streaming.log.api import NewRecord


def outcome(kind: str, body: dict[str, Any]) -> NewRecord:
    """Return a record of the outcome log."""
    return NewRecord(kind, "", orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS))
