"""What the image keeps of open transactions when offsets go."""

from __future__ import annotations

import orjson
import pytest

from state.groups.answers import fetch_offsets
from state.groups.image import GroupImage
from state.groups.tables import Phase
from state.protocol_errors import ProtocolError

AT = ("t", 0)
ROW = [*AT, 5, -1, "", 1_000, None, 1]


def image_after(reason: str) -> GroupImage:
    """A group whose committed offset went, while a transaction was about to commit another."""
    steps = [
        {"change": "group_created"},
        {"change": "offsets_committed", "offsets": [ROW]},
        {"change": "transaction_pending", "producer_id": 9, "offsets": [[*AT, 7, *ROW[3:]]]},
        {"change": "offsets_removed", "partitions": [list(AT)], "reason": reason},
    ]
    image = GroupImage()
    body = {"group": "g", "partition": 0, "steps": [{"changes": steps, "replies": []}]}
    image.apply(1, orjson.dumps(body))
    return image


@pytest.mark.parametrize(
    ("reason", "error"),
    [("expired", ProtocolError.UNSTABLE_OFFSET_COMMIT), ("deleted", ProtocolError.NONE)],
)
def test_an_offset_that_expires_leaves_what_a_transaction_commits(
    reason: str, error: ProtocolError
) -> None:
    """GroupMetadata.removeExpiredOffsets, removeOffsets."""
    _, (found,) = fetch_offsets(image_after(reason), Phase.OWNED, "g", [AT], require_stable=True)
    assert (found.error, found.offset) == (error, -1)
