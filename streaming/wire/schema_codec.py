"""The one typed door to kafka-python's untyped schema codec: plain dicts in, plain dicts out.

kafka-python's message classes (ApiMessage) are not used: a field named `type` (LeaderAndIsr)
hides their own `type` attribute, they rename some fields, and declaring one replaces the response
class that kafka-python's client looks up. Its schema fields and compiled codec are used directly.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from typing import Any

from kafka.protocol.data_container import DataContainer
from kafka.protocol.schemas import StructField, load_json
from kafka.protocol.schemas.fields.base import BaseField
from kafka.protocol.schemas.fields.codecs import EncodeBufferPool

from streaming.wire.bounded_decoders import Decoder, bounded_decoder
from streaming.wire.errors import MalformedFrame

Body = dict[str, Any]
"""A message as a dict: snake_case field names, nested structs as dicts, arrays as lists, UUIDs as
uuid.UUID (the all-zero UUID is None). isKRaftController becomes is_k_raft_controller."""

_NULL_UUID_TYPE = "uuid"
_DECODE_ERRORS = (struct.error, IndexError, ValueError, AssertionError, OverflowError)
_ENCODE_ERRORS = (struct.error, TypeError, AttributeError, ValueError)


@dataclass(frozen=True, slots=True)
class _Field:
    """How one field moves between dict and message in one version."""

    name: str
    in_version: bool
    nullable: bool
    is_array: bool
    inner: _Layout | None
    holds_uuids: bool = False


@dataclass(frozen=True, slots=True)
class _Layout:
    fields: tuple[_Field, ...]
    names: frozenset[str]
    message_class: Any


class MessageSchema:
    """One message in all its versions.

    name is a schema file's name without `.json`, package the package that holds the file.
    compact_lengths=False keeps two-byte string lengths in flexible versions (request headers).
    structs_max: how many structs a message that is read may have, None for any number.
    """

    def __init__(
        self,
        name: str,
        package: str,
        *,
        compact_lengths: bool = True,
        structs_max: int | None = None,
    ) -> None:
        schema = load_json(name, package=package)
        self.name = name
        self._flexible_from = int(BaseField.parse_versions(schema["flexibleVersions"])[0])
        _, self.max_version = map(int, BaseField.parse_versions(schema["validVersions"]))
        # kafka-python lists 2-7 for CreateTopics although its fields describe 0 and 1 as well;
        # which versions are accepted is decided where messages are registered.
        schema["validVersions"] = f"0-{self.max_version}"
        self._structs_max = structs_max
        self._compact_lengths = compact_lengths
        self._struct = StructField(schema)
        self._message_class = type(name, (DataContainer,), {"_struct": self._struct})
        self._struct.set_data_class(self._message_class)

    def is_flexible(self, version: int) -> bool:
        """Whether this version uses compact lengths and tagged fields (KIP-482)."""
        return 0 <= self._flexible_from <= version

    def _format(self, version: int) -> dict[str, bool]:
        flexible = self.is_flexible(version)
        return {"compact": flexible and self._compact_lengths, "tagged": flexible}

    @functools.cache  # noqa: B019 - schemas live as long as the process
    def _decoder(self, version: int) -> Decoder:
        most = self._structs_max
        return bounded_decoder(self._struct, version, structs_max=most, **self._format(version))

    @functools.cache  # noqa: B019 - the same
    def _layout(self, version: int) -> _Layout:
        return _layout_of(self._struct, self._message_class, version)

    def encode(self, version: int, body: Body) -> bytes:
        """Encode a body; missing fields take the schema's default.

        Fields that this version does not have are left out silently, so one full body serves all
        versions. Raises ValueError for unknown names, nulls and values that do not fit.
        """
        try:
            message = _to_message(body, self._layout(version), version)
            encode = self._struct.compiled_encode_into(version, **self._format(version))
            with EncodeBufferPool.acquire() as out:
                encode(message, out)
                return bytes(out.result())
        except _ENCODE_ERRORS as error:
            raise ValueError(f"cannot encode {self.name} version {version}: {error}") from error

    def decode(self, version: int, data: bytes, start: int = 0) -> Body:
        """Decode data[start:], which must hold exactly this message.

        Every field of the schema is in the result; those this version lacks hold their default.
        Raises MalformedFrame, whatever the bytes are.
        """
        body, end = self.decode_prefix(version, data, start)
        if end != len(data):
            raise MalformedFrame(f"{self.name} version {version} ends at byte {end} of {len(data)}")
        return body

    def decode_prefix(self, version: int, data: bytes, start: int = 0) -> tuple[Body, int]:
        """Decode a message at data[start:] that others may follow; returns it and where it ends."""
        try:
            message, end = self._decoder(version)(memoryview(data), start)
        except _DECODE_ERRORS as error:
            raise MalformedFrame(f"{self.name} version {version}: {error}") from error
        # The codec slices strings without looking whether all their bytes are there.
        if end > len(data):
            raise MalformedFrame(f"{self.name} version {version} is cut off at byte {len(data)}")
        return _to_body(message, self._layout(version), self.name), int(end)


def _layout_of(schema: Any, message_class: Any, version: int) -> _Layout:
    fields = tuple(_field_of(field, version) for field in schema.fields.values())
    return _Layout(fields, frozenset(field.name for field in fields), message_class)


def _field_of(field: Any, version: int) -> _Field:
    in_version = field.for_version_q(version)
    inner = None
    is_array = field.is_struct_array()
    is_struct = isinstance(field, StructField)
    if is_array or is_struct:
        inner = _layout_of(field.array_of if is_array else field, field.data_class, version)
    # A tagged struct that is left out has no value at all.
    nullable = field.nullable_for_version_q(version) or is_struct
    nullable = nullable or field.type_str == _NULL_UUID_TYPE
    holds_uuids = field.type_str == f"[]{_NULL_UUID_TYPE}"
    return _Field(field.name, in_version, nullable, is_array, inner, holds_uuids)


def _to_message(body: Body, layout: _Layout, version: int) -> Any:
    if unknown := body.keys() - layout.names:
        raise ValueError(f"unknown fields {sorted(unknown)}, allowed {sorted(layout.names)}")
    values = {}
    for field in layout.fields:
        if not field.in_version or field.name not in body:
            continue
        value = body[field.name]
        if value is None and not field.nullable:
            raise ValueError(f"field {field.name} must not be null")
        if field.inner is not None and value is not None:
            value = (
                [_to_message(item, field.inner, version) for item in value]
                if field.is_array
                else _to_message(value, field.inner, version)
            )
        values[field.name] = value
    return layout.message_class(version=version, **values)


def _to_body(message: Any, layout: _Layout, path: str) -> Body:
    body: Body = {}
    for field in layout.fields:
        value = getattr(message, field.name)
        if value is None and field.in_version and not field.nullable:
            raise MalformedFrame(f"null for {path}.{field.name}")
        if field.inner is not None and value is not None:
            value = (
                [_to_body(item, field.inner, field.name) for item in value]
                if field.is_array
                else _to_body(value, field.inner, field.name)
            )
        elif isinstance(value, list):
            # Elements of Kafka's arrays are never nullable, but the all-zero UUID is None.
            if None in value and not field.holds_uuids:
                raise MalformedFrame(f"null in {path}.{field.name}")
            # An absent field's default is one list shared by all messages.
            value = list(value)
        body[field.name] = value
    return body
