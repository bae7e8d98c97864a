"""ListGroups, DescribeLogDirs and ListTransactions: asked of every node, and this one has none.

Tools ask all nodes that Metadata names and fail if one of them does not know the API.
"""

from __future__ import annotations

from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call
from streaming.wire.schema_codec import Body


async def list_groups(_: Call) -> Body:
    """Answer that this node coordinates no group."""
    return {"error_code": ProtocolError.NONE, "groups": []}


class DescribeLogDirs:
    """Answers DescribeLogDirs with the data folder, in which there is no log of a topic.

    Java's Admin client takes an empty list for a refusal.
    """

    def __init__(self, folder: str) -> None:
        """Take the folder's path."""
        self._folder = folder

    async def handle(self, _: Call) -> Body:
        """Answer whatever was asked about."""
        folder = {"error_code": ProtocolError.NONE, "log_dir": self._folder, "topics": []}
        return {"error_code": ProtocolError.NONE, "results": [folder]}


async def list_transactions(_: Call) -> Body:
    """Answer that this node coordinates no transaction."""
    return {
        "error_code": ProtocolError.NONE,
        "unknown_state_filters": [],
        "transaction_states": [],
    }
