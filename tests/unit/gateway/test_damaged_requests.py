"""Requests with flipped bytes: whatever they decode to, no handler fails, every event is readable.

The made-up cluster parses and folds every event as the job does, and fails when a machine sets one
aside.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Any

import pytest

from streaming.wire.apis import APIS, GATEWAY_APIS, ApiKey
from streaming.wire.frames import frame
from streaming.wire.requests import encode_request
from tests.unit.gateway.bodies import BODIES
from tests.unit.gateway.support import Rig, with_gateway

SEEDS = range(40)
HEADER_BYTES = 8


def damaged(api_key: ApiKey, version: int, seed: int) -> bytes:
    """A request with one to three bytes behind the header's fixed part set to others."""
    chance = random.Random(f"{api_key} {version} {seed}")
    request = bytearray(encode_request(api_key, version, seed, "c", BODIES[api_key]))
    for _ in range(chance.randint(1, 3)):
        request[chance.randrange(HEADER_BYTES, len(request))] = chance.choice(
            [0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)]
        )
    return frame(bytes(request))


async def ask(rig: Rig, request: bytes) -> None:
    client = await rig.client()
    client.writer.write(request)
    client.writer.write_eof()
    async with asyncio.timeout(20):
        with suppress(ConnectionError):  # closed before our end of the stream came
            await client.reader.read()
    await client.close()


def with_texts(value: Any, text: str) -> Any:
    """A body, all of whose strings are others."""
    if isinstance(value, dict):
        return {name: with_texts(one, text) for name, one in value.items()}
    if isinstance(value, list):
        return [with_texts(one, text) for one in value]
    return text if isinstance(value, str) else value


@pytest.mark.parametrize("api_key", sorted(GATEWAY_APIS), ids=lambda key: ApiKey(key).name)
def test_the_longest_names_are_answered(api_key: ApiKey) -> None:
    """Answers repeat them, perhaps in a sentence."""

    async def scenario(rig: Rig) -> None:
        api = APIS[api_key]
        for version in {api.min_version, api.max_version}:
            for text in ("n" * 0x7FFF, "9" * 0x7FFF, "\0" * 0x7FFF):
                body = with_texts(BODIES[api_key], text)
                await ask(rig, frame(encode_request(api_key, version, 1, "c", body)))
        counters = rig.gateway.counters
        assert counters["closed_failed"] == counters["closed_malformed"] == 0
        assert counters[f"requests_{api.name}"] > 0

    with_gateway(scenario)


@pytest.mark.parametrize("api_key", sorted(GATEWAY_APIS), ids=lambda key: ApiKey(key).name)
def test_damaged_requests_are_answered_or_close_their_connection(api_key: ApiKey) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]], "dHR0dHR0dHR0dHR0dHR0dA")
        api = APIS[api_key]
        for version in range(api.min_version, api.max_version + 1):
            await asyncio.gather(*(ask(rig, damaged(api_key, version, seed)) for seed in SEEDS))
        counters = rig.gateway.counters
        assert counters["closed_failed"] == 0
        answered = counters[f"requests_{api.name}"] + counters["closed_malformed"]
        assert answered == len(SEEDS) * (api.max_version - api.min_version + 1)

    with_gateway(scenario)
