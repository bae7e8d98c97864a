"""Every message at every version: what goes in comes out, and no bytes break the decoder."""

from __future__ import annotations

import contextlib
import uuid
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.schemas import load_json
from kafka.protocol.schemas.fields.base import BaseField

from streaming.wire.apis import APIS
from streaming.wire.errors import MalformedFrame, WireError
from streaming.wire.frames import FrameSplitter, frame
from streaming.wire.requests import DECODED_WITHOUT_SCHEMA, decode_request, encode_request
from streaming.wire.responses import decode_response, encode_response

API_VERSIONS = [
    pytest.param(api, version, id=f"{api.name} {version}")
    for api in APIS.values()
    for version in range(api.min_version, api.max_version + 1)
]
SIMPLE = {
    **{
        f"int{bits}": st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)
    },
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "bytes": st.binary(max_size=9),
    "records": st.binary(max_size=9),
    "string": st.text(st.characters(codec="utf-8"), max_size=5) | st.just("x" * 200),
    "uuid": st.none() | st.integers(1, (1 << 128) - 1).map(lambda value: uuid.UUID(int=value)),
}
PER_VERSION = settings(max_examples=settings().max_examples // 5)  # of several hundred versions
CORRELATION_IDS = st.integers(0, (1 << 31) - 1)


@cache
def bodies(schema: str, package: str, version: int):
    """Random bodies that hold exactly the fields of one version."""
    return _struct(load_json(schema, package=package)["fields"], version)


def _struct(fields: list[dict], version: int):
    return st.fixed_dictionaries(
        {
            BaseField.underscore_name(field["name"]): _value(field, version)
            for field in fields
            if _covers(field["versions"], version)
        }
    )


def _value(field: dict, version: int):
    kind = field["type"]
    if "fields" in field:
        values = _struct(field["fields"], version)
    else:
        values = SIMPLE[kind.removeprefix("[]")]
    if kind.startswith("[]"):
        values = st.lists(values, max_size=3)
    nullable = _covers(field.get("nullableVersions", "none"), version)
    return st.none() | values if nullable else values


def _covers(versions: str, version: int) -> bool:
    oldest, newest = BaseField.parse_versions(versions)
    return oldest <= version <= newest


def holds(decoded, sent) -> bool:
    """True when every field that was sent is there, whatever defaults stand beside it."""
    if isinstance(sent, dict):
        return all(holds(decoded[name], value) for name, value in sent.items())
    if isinstance(sent, list):
        return len(decoded) == len(sent) and all(map(holds, decoded, sent))
    return decoded == sent


def versions(api):
    return st.integers(api.min_version, api.max_version)


def request_bodies(api, version):
    return bodies(f"{api.name}Request", api.package, version)


def response_bodies(api, version):
    drawn = bodies(f"{api.name}Response", api.package, version)
    if api.name == "ApiVersions":  # with an error it is read as version 0
        return drawn.map(lambda body: body | {"error_code": 0})
    return drawn


@pytest.mark.parametrize(
    ("api", "version"),
    [one for one in API_VERSIONS if one.values[0].key not in DECODED_WITHOUT_SCHEMA],
)
@PER_VERSION
@given(data=st.data())
def test_requests_round_trip(api, version, data):
    body = data.draw(request_bodies(api, version))
    correlation_id = data.draw(CORRELATION_IDS)
    client_id = data.draw(st.none() | SIMPLE["string"])
    encoded = encode_request(api.key, version, correlation_id, client_id, body)
    request = decode_request(encoded, served=APIS)
    assert request.header.correlation_id == correlation_id
    assert holds(request.body, body)
    again = encode_request(api.key, version, correlation_id, client_id, request.body)
    assert again == encoded


@pytest.mark.parametrize(("api", "version"), API_VERSIONS)
@PER_VERSION
@given(data=st.data())
def test_responses_round_trip(api, version, data):
    body = data.draw(response_bodies(api, version))
    correlation_id = data.draw(CORRELATION_IDS)
    encoded = encode_response(api.key, version, correlation_id, body)
    decoded_id, decoded = decode_response(api.key, version, encoded)
    assert decoded_id == correlation_id
    assert holds(decoded, body)
    assert encode_response(api.key, version, correlation_id, decoded) == encoded


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
@PER_VERSION
@given(data=st.data())
def test_cut_off_messages_are_malformed(api, data):
    version = data.draw(versions(api))
    request = encode_request(api.key, version, 1, "c", data.draw(request_bodies(api, version)))
    response = encode_response(api.key, version, 1, data.draw(response_bodies(api, version)))
    for end in range(len(request)):
        with pytest.raises(MalformedFrame):
            decode_request(request[:end], served=APIS)
    for end in range(len(response)):
        with pytest.raises(MalformedFrame):
            decode_response(api.key, version, response[:end])


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
@PER_VERSION
@given(data=st.data())
def test_any_bytes_decode_or_raise_a_wire_error(api, data):
    """Random bytes, and valid messages with some bytes overwritten."""
    version = data.draw(versions(api))
    valid = encode_request(api.key, version, 1, "c", data.draw(request_bodies(api, version)))
    damaged = bytearray(valid)
    for position in data.draw(st.lists(st.integers(8, len(valid) - 1), min_size=1, max_size=4)):
        damaged[position] = data.draw(st.integers(0, 255))
    noise = data.draw(st.binary(max_size=60))
    for tail in (bytes(damaged[8:]), noise):
        try:
            request = decode_request(valid[:8] + tail, served=APIS)
        except WireError:
            pass
        else:
            assert request.header.api_version == version
        with contextlib.suppress(WireError):
            decode_response(api.key, version, valid[:4] + tail)


@given(st.lists(st.binary(max_size=50), max_size=6), st.data())
def test_any_cut_of_a_stream_gives_the_same_frames(messages, data):
    stream = b"".join(map(frame, messages))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=10).map(sorted))
    splitter = FrameSplitter()
    frames = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        frames += splitter.feed(stream[start:end])
    assert frames == messages
