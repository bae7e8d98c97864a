"""What brokers were told: the last state of each partition in the requests each one got.

A broker's UpdateMetadata usually has the same bytes as the others', so equal sequences are decoded
once. The result is one JSON file, to be compared with another controller's.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from streaming.wire.apis import BROKER_APIS, ApiKey
from streaming.wire.requests import decode_request

_EPOCH = struct.Struct(">q")
_EPOCH_IS_WITHIN_BYTES = 64


@dataclass(frozen=True, slots=True)
class Kept:
    """One request as it came, without its size; its body begins at `start`."""

    at_ns: int
    broker_id: int
    api: ApiKey
    request: bytes
    start: int


def write_told(kept: Sequence[Kept], epochs: Mapping[int, int], path: Path) -> int:
    """Write {broker: {api: digest}} and {digest: {partition: state}}; return the file's bytes."""
    sequences: dict[int, dict[str, list[bytes]]] = {}
    for one in kept:
        if one.api in BROKER_APIS:
            apis = sequences.setdefault(one.broker_id, {})
            apis.setdefault(one.api.name, []).append(_shared(one, epochs))
    folded: dict[str, dict[str, Any]] = {}
    brokers = {
        str(broker_id): {api: _fold(bodies, folded) for api, bodies in apis.items()}
        for broker_id, apis in sequences.items()
    }
    return path.write_bytes(orjson.dumps({"brokers": brokers, "told": folded}))


def _shared(one: Kept, epochs: Mapping[int, int]) -> bytes:
    """Return the request without what differs between brokers: correlation id, broker epoch."""
    request = one.request[:4] + bytes(4) + one.request[8:]
    end = one.start + _EPOCH_IS_WITHIN_BYTES
    head = request[:end].replace(_EPOCH.pack(epochs[one.broker_id]), bytes(_EPOCH.size), 1)
    return head + request[end:]


def _fold(requests: list[bytes], folded: dict[str, dict[str, Any]]) -> str:
    digest = hashlib.sha256(b"".join(requests)).hexdigest()
    if digest not in folded:
        states: dict[str, Any] = {}
        for request in requests:
            states.update(_states(request))
        folded[digest] = states
    return digest


def _states(request: bytes) -> Iterator[tuple[str, Any]]:
    """Yield each partition that a request names, and what it says but for the epochs."""
    for topic in decode_request(request, BROKER_APIS).body["topic_states"]:
        for state in topic["partition_states"]:
            name = f"{topic['topic_name']}-{state['partition_index']}"
            if "isr" in state:
                yield name, [state["leader"], state["isr"], state["replicas"]]
            else:
                yield name, state["delete_partition"]
