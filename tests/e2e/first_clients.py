"""Commits as the first clients send them: version 0 keeps offsets in ZooKeeper, version 1 says when
each was made.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

from streaming.wire.apis import APIS, ApiKey
from streaming.wire.frames import frame

_HEADER = struct.Struct(">hhih")
_NO_CLIENT = -1
_ID_BYTES = 4
_TIMEOUT_S = 30.0

Address = tuple[str, int]


def ask(at: Address, api_key: ApiKey, version: int, body: dict[str, Any]) -> dict[str, Any]:
    """Ask one node, on a connection of its own."""
    request = _HEADER.pack(api_key, version, 1, _NO_CLIENT) + APIS[api_key].request.encode(
        version, body
    )
    with socket.create_connection(at, timeout=_TIMEOUT_S) as connection:
        connection.sendall(frame(request))
        answers = connection.makefile("rb")
        answer = answers.read(int.from_bytes(answers.read(4), "big"))
    return APIS[api_key].response.decode(version, answer[_ID_BYTES:])


def coordinator(at: Address, group: str) -> Address:
    """Ask a node for a group's coordinator."""
    found = ask(at, ApiKey.FIND_COORDINATOR, 0, {"key": group})
    assert found["error_code"] == 0, found
    return found["host"], found["port"]


def commit(at: Address, version: int, group: str, topic: str, offset: int) -> int:
    """Commit partition 0 of a topic for a group without members; return the error code."""
    rows = [{"partition_index": 0, "committed_offset": offset, "committed_metadata": "old"}]
    body = {"group_id": group, "topics": [{"name": topic, "partitions": rows}]}
    answer = ask(at, ApiKey.OFFSET_COMMIT, version, body)
    code: int = answer["topics"][0]["partitions"][0]["error_code"]
    return code


def fetched(at: Address, version: int, group: str, topic: str) -> int:
    """Return what is committed of partition 0 of a topic."""
    body = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}
    answer = ask(at, ApiKey.OFFSET_FETCH, version, body)
    offset: int = answer["topics"][0]["partitions"][0]["committed_offset"]
    return offset
