"""Spark's own Kafka connector reads a log in a topic, as any consumer can."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import orjson
import pyspark
import pytest

from streaming.embedded.ivy import Artifact, fetch_jars
from streaming.embedded.kafka_jars import kafka_jars
from streaming.log.api import NewRecord
from streaming.log.kafka_reader import KafkaLogReader
from streaming.log.kafka_topic import to_headers
from streaming.log.kafka_writer import KafkaLogWriter
from streaming.log.location import KafkaTopic
from tests.logs.state_logs import long_log

READ_S = 240
# What the connector makes tokens for secured clusters with need not be of its version, in which not
# every repository has it.
JARS = [
    Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13", pyspark.__version__, "master"),
    Artifact("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0", "master"),
    Artifact("org.apache.commons", "commons-pool2", "2.13.1", "master"),
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # the jars may have to be fetched
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def hexadecimal(data: bytes) -> str:
    return data.hex().upper()


def read_with_the_connector(topic: KafkaTopic) -> list[dict[str, Any]]:
    jars = [*fetch_jars(f"spark-kafka-{pyspark.__version__}", JARS).glob("*.jar")]
    jars += kafka_jars().glob("kafka-clients-*.jar")
    command = [sys.executable, "-m", "tests.spark.connector_reader", ",".join(map(str, jars))]
    command += [topic.bootstrap_servers, topic.name]
    read = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=READ_S)
    return [orjson.loads(line) for line in read.stdout.splitlines()]


def test_sparks_connector_reads_what_our_reader_reads(log_topic: KafkaTopic) -> None:
    events = [
        NewRecord("of_ün", "kéy", b"\x00\xff", 1),
        NewRecord("without_key", "", b"", 2_000_000_000_123),
    ]
    recorded = [NewRecord(one.kind, one.key, one.payload, 1 + one.time_ms) for one in long_log(11)]
    with KafkaLogWriter(log_topic) as writer:
        writer.append([events[0], *recorded])
        writer.append([events[1]])
    found = read_with_the_connector(log_topic)
    with KafkaLogReader(log_topic) as reader:
        ours = [
            {
                "partition": 0,
                "offset": one.offset,
                "time_ms": one.time_ms,
                "key": hexadecimal(one.key.encode()),
                "payload": hexadecimal(one.payload),
                "headers": [[name, hexadecimal(value)] for name, value in to_headers(one.kind)],
            }
            for one in reader.read(0, reader.end_offset())
        ]
    assert len(ours) == len(events) + len(recorded)
    assert found == ours
