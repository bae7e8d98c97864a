"""Spark is told the same columns as Arrow."""

from __future__ import annotations

from checkpoints.ddl import ddl
from checkpoints.group_table import GROUP_SCHEMA
from checkpoints.tables import PARTITION_SCHEMA


def test_a_schema_is_told_to_spark_by_its_names_and_types():
    columns = ddl(PARTITION_SCHEMA).split(", ")
    assert columns[:2] == ["`topic` string", "`partition` int"]
    assert columns[-2:] == ["`replica_states` array<string>", "`deleting` boolean"]


def test_what_is_nested_is_told_too():
    *_, members, offsets = (one for one in ddl(GROUP_SCHEMA).split("array<"))
    assert members.startswith("struct<`id`: string, `instance`: string,")
    assert offsets.endswith("`metadata`: string, `commit_ms`: bigint>>")
