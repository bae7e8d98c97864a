"""What one broker tells clients: a Metadata request to that broker and no other."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from streaming.embedded.ports import LOOPBACK
from streaming.wire.apis import ApiKey
from streaming.wire.frames import frame
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response

_VERSION = 4  # the first that creates no topics; all brokers know it
_TIMEOUT_S = 5.0
_SIZE_BYTES = 4


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A broker's metadata cache: the controller, and leaders by (topic, partition)."""

    controller_id: int
    leaders: dict[tuple[str, int], int]


def ask_metadata(port: int) -> BrokerView:
    """Ask the broker that listens on a loopback port; raises OSError when it does not answer."""
    body = {"topics": None, "allow_auto_topic_creation": False}
    request = encode_request(ApiKey.METADATA, _VERSION, 1, "helmstream-demo", body)
    with socket.create_connection((LOOPBACK, port), timeout=_TIMEOUT_S) as connection:
        connection.sendall(frame(request))
        answers = connection.makefile("rb")
        size = int.from_bytes(answers.read(_SIZE_BYTES), "big")
        answer = answers.read(size)
    if not size or len(answer) < size:
        raise ConnectionError(f"the broker on port {port} hung up")
    _, metadata = decode_response(ApiKey.METADATA, _VERSION, answer)
    leaders = {
        (topic["name"], partition["partition_index"]): partition["leader_id"]
        for topic in metadata["topics"]
        for partition in topic["partitions"]
    }
    return BrokerView(metadata["controller_id"], leaders)
