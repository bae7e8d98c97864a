"""kafka-python's compiled decoders, bounded where they would read on for as long as bytes say so.

The library generates a decoder line by line. Some kinds of lines take their length from the bytes
alone: numbers of any length, which cost the square of it; strings longer than Kafka allows; tagged
fields, for which the rest of the frame is copied, in each element of an array again; and structs,
which take a hundred times as much memory as the two bytes that the smallest needs.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any, cast

from kafka.protocol.schemas import StructField
from kafka.protocol.schemas.fields.codegen import CodegenContext

from streaming.wire.reading import STRING_BYTES_MAX, VARINT_BYTES_MAX, after_tags

Decoder = Callable[[memoryview, int], tuple[Any, int]]

_NEXT_SEVEN_BITS = re.compile(r"    (\w+) \+= 7")
_TEXT = re.compile(r'    \w+ = str\(data\[pos:pos\+(\w+)\], "utf-8"\)')
_STRUCT = re.compile(r"\w+ = object\.__new__\(\w+\)")
_REST_OF_FRAME = "_BytesIO(bytes(data[pos:]))"
_TAGS_ALONE = "_BytesIO(bytes(data[pos:_after_tags(data, pos)]))"
_LAST_SHIFT = 7 * (VARINT_BYTES_MAX - 1)


class _WholeReads(io.BytesIO):
    """Reads all bytes asked for or fails, where kafka-python's tagged fields would take fewer."""

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if size is None or len(data) != size:
            raise ValueError(f"{len(data)} bytes left where {size} are announced")
        return data


class _Bounded(CodegenContext):
    """Takes the lines of a decoder."""

    def __init__(self, structs_max: int | None) -> None:
        super().__init__()
        self._structs_max = structs_max

    def emit(self, indent: str, line: str) -> None:
        if text := _TEXT.fullmatch(line):
            reason = f"string of more than {STRING_BYTES_MAX} bytes"
            self._refuse(f"{indent}    ", f"{text[1]} > {STRING_BYTES_MAX}", reason)
        elif self._structs_max is not None and _STRUCT.fullmatch(line):
            super().emit(indent, "structs += 1")
            reason = f"more than {self._structs_max} structs"
            self._refuse(indent, f"structs > {self._structs_max}", reason)
        super().emit(indent, line.replace(_REST_OF_FRAME, _TAGS_ALONE))
        if number := _NEXT_SEVEN_BITS.fullmatch(line):
            reason = f"number of more than {VARINT_BYTES_MAX} bytes"
            self._refuse(f"{indent}    ", f"{number[1]} > {_LAST_SHIFT}", reason)

    def _refuse(self, indent: str, condition: str, reason: str) -> None:
        words = f'f"{reason}, read up to byte {{pos}}"'
        super().emit(indent, f"if {condition}: raise ValueError({words})")


def bounded_decoder(
    struct: StructField, version: int, *, compact: bool, tagged: bool, structs_max: int | None
) -> Decoder:
    """Return what reads a message of a version at a place: the message, and where it ends.

    structs_max: how many structs a message may have, itself counted, None for any number. What it
    raises for bytes that are no message: struct.error, IndexError, ValueError, AssertionError,
    OverflowError.
    """
    context = _Bounded(structs_max)
    context.lines += ["def _decode(data, pos):", "    structs = 0"]
    struct.emit_decode_from(context, "obj", "    ", version=version, compact=compact, tagged=tagged)
    context.emit("    ", "return obj, pos")
    names = context.globs | {"_BytesIO": _WholeReads, "_after_tags": after_tags}
    code = compile(context.source(), f"<decoder of {struct.name} {version}>", "exec")
    exec(code, names)  # noqa: S102 - source that the library made of a schema
    return cast("Decoder", names["_decode"])
