"""Prints the records of a topic as Spark's own Kafka connector reads them.

A program of its own: a JVM takes jars when it starts.
"""

from __future__ import annotations

import sys

import orjson
from pyspark.sql import SparkSession

COLUMNS = (
    "partition",
    "offset",
    "unix_millis(timestamp) AS time_ms",
    "hex(key) AS key",
    "hex(value) AS payload",
    "transform(headers, one -> array(one.key, hex(one.value))) AS headers",
)


def main(jars: str, servers: str, topic: str) -> None:
    """Print each record as JSON, bytes as hexadecimal."""
    builder = SparkSession.Builder().master("local[1]").config("spark.jars", jars)
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "includeHeaders": "true"}
    records = spark.read.format("kafka").options(**options).load()
    for row in records.orderBy("offset").selectExpr(*COLUMNS).collect():
        sys.stdout.buffer.write(orjson.dumps(row.asDict()) + b"\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
