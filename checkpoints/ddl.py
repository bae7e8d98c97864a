"""The schema of a table in Spark's DDL."""

from __future__ import annotations

import pyarrow as pa

_SIMPLE = {
    pa.string(): "string",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
}


def ddl(schema: pa.Schema) -> str:
    """Return an Arrow schema as Spark's DDL; KeyError: it has a type that no table of ours has."""
    return ", ".join(f"`{field.name}` {_type(field.type)}" for field in schema)


def _type(found: pa.DataType) -> str:
    if pa.types.is_list(found):
        return f"array<{_type(found.value_type)}>"
    if pa.types.is_struct(found):
        return f"struct<{', '.join(f'`{one.name}`: {_type(one.type)}' for one in found)}>"
    return _SIMPLE[found]
