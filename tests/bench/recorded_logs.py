"""Logs as a cluster in operation leaves them, of any length, for replay benchmarks.

Everything is computed; no fold is needed to write a request that will be accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from streaming.log.api import NewRecord

BROKERS = 30
PARTITIONS_PER_TOPIC = 50
GROUP_CONFIG = {"group.initial.rebalance.delay.ms": 0}
STEP_MS = 20


def record(at: int, kind: str, key: str, **body: Any) -> NewRecord:
    return NewRecord(kind, key, orjson.dumps(body), 1_700_000_000_000 + at * STEP_MS)


def _broker(id_: int, epoch: int) -> dict[str, Any]:
    listener = {"listener": "PLAINTEXT", "host": f"10.0.0.{id_}", "port": 9092}
    return {"id": id_, "epoch": epoch, "rack": None, "endpoints": [listener]}


def _replicas(topic: int, partition: int) -> list[int]:
    first = (topic * 7 + partition) % BROKERS
    return [1 + (first + step * (1 + topic % 5)) % BROKERS for step in range(3)]


def controller_log(topics: int, requests: int) -> Iterator[NewRecord]:
    """Yield a load of `topics` x 50 partitions of three replicas, then AlterPartition requests that
    shrink and expand ISRs one partition at a time; after each thousand a broker without partitions
    comes or goes.
    """
    at = 0
    elected = {"controller_id": 1000, "epoch": 2, "epoch_zk_version": 1, "endpoints": []}
    yield record(at, "controller_elected", "", **elected, config={})
    brokers = [_broker(id_, 1_000 + id_) for id_ in range(1, BROKERS + 1)]
    yield record(at, "broker_registrations_changed", "", registered=brokers)
    for topic in range(topics):
        yield _topic(at, topic)
    yield record(at, "resync_completed", "", topics=topics)
    versions: dict[tuple[int, int], int] = {}
    for number in range(requests):
        at += 1
        # Two requests in a row are about one partition: its ISR shrinks and expands.
        topic, partition = number // 2 % topics, number // 2 // topics % PARTITIONS_PER_TOPIC
        version = versions.get((topic, partition), 0)
        versions[topic, partition] = version + 1
        yield _alter_partition(at, topic, partition, version, shrink=number % 2 == 0)
        if number % 1_000 == 999:
            yield _spare_broker(at, number // 1_000)


def _topic(at: int, topic: int) -> NewRecord:
    numbers = list(range(PARTITIONS_PER_TOPIC))
    replicas = [_replicas(topic, number) for number in numbers]
    states = [[ids[0], 0, ids, 1, 0, 0] for ids in replicas]
    name = f"topic-{topic:05d}"
    body = {"topic": name, "partitions": numbers, "replicas": replicas, "states": states}
    return record(at, "topic_observed", name, **body)


def _alter_partition(
    at: int, topic: int, partition: int, version: int, *, shrink: bool
) -> NewRecord:
    ids = _replicas(topic, partition)
    name = f"topic-{topic:05d}"
    change = {"partition": partition, "leader_epoch": 0, "partition_epoch": version}
    return record(
        at,
        "alter_partition_requested",
        name,
        request_id=f"1-{at}",
        broker_id=ids[0],
        broker_epoch=1_000 + ids[0],
        version=3,
        topic=name,
        topic_id=None,
        partitions=[change | {"isr": ids[:2] if shrink else ids}],
    )


def _spare_broker(at: int, thousand: int) -> NewRecord:
    if thousand % 2:
        return record(at, "broker_registrations_changed", "", unregistered=[BROKERS + 1])
    spare = [_broker(BROKERS + 1, 2_000 + thousand)]
    return record(at, "broker_registrations_changed", "", registered=spare)


def group_log(groups: int, commits: int) -> Iterator[NewRecord]:
    """Yield commits of five partitions each by groups that assign partitions themselves."""
    partitions = list(range(50))
    yield record(0, "group_coordinator_configured", "", config=GROUP_CONFIG)
    for kind in ("group_partitions_elected", "group_partitions_loaded"):
        yield record(0, kind, "", partitions=partitions, epoch=1)
    for number in range(commits):
        group = f"group-{number % groups:05d}"
        offsets = [[f"topic-{number % 7:05d}", part, number, -1, ""] for part in range(5)]
        yield record(
            number,
            "offset_commit_requested",
            group,
            request_id=f"1-{number}",
            partition=number % groups % len(partitions),
            version=8,
            group=group,
            member="",
            instance=None,
            generation=-1,
            offsets=offsets,
        )
