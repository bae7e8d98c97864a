"""Topics that groups consume: made, grown, written, and what is committed of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import orjson
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from kafka import KafkaAdminClient, errors

from state.decisions import DecisionKind
from streaming.log.embedded import EmbeddedLogReader
from streaming.paths import DataDir
from tests.e2e.group_processes import Members, Partition
from tests.e2e.waiting import wait_for

Record = tuple[str, int, int]
"""Topic, partition and offset."""

_TIMEOUT_S = 60.0
_ASK_MS = 20_000
_GOES_ON_S = 180.0


class Topics:
    """An administrator and a producer beside the groups; written: records by partition."""

    def __init__(self, brokers: Sequence[str], folders: DataDir) -> None:
        self.place = {"bootstrap.servers": ",".join(brokers)}
        self.written: Counter[Partition] = Counter()
        quiet: dict[str, Any] = {**self.place, "log_level": 0}
        self._admin = AdminClient(quiet)
        self._asker = self._new_asker()
        self._producer = Producer({**quiet, "enable.idempotence": True})
        self._folders = folders

    def create(self, topic: str, partitions: int) -> None:
        made = self._admin.create_topics(
            [NewTopic(topic, partitions, 3)], operation_timeout=_TIMEOUT_S
        )
        made[topic].result(_TIMEOUT_S)
        self._wait_known(topic, partitions)

    def replace(self, topic: str, partitions: int) -> None:
        """Delete a topic, and create another one of that name."""
        gone = self._admin.delete_topics([topic], operation_timeout=_TIMEOUT_S)
        gone[topic].result(_TIMEOUT_S)

        def created() -> bool:
            try:
                self.create(topic, partitions)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
                return False
            return True

        wait_for(f"the end of {topic}", created)

    def grow(self, topic: str, partitions: int) -> None:
        grown = self._admin.create_partitions(
            [NewPartitions(topic, partitions)], operation_timeout=_TIMEOUT_S
        )
        grown[topic].result(_TIMEOUT_S)
        self._wait_known(topic, partitions)

    def _wait_known(self, topic: str, partitions: int) -> None:
        """Wait until the producer may write to all."""

        def known() -> bool:
            found = self._producer.list_topics(topic, _TIMEOUT_S).topics[topic]
            return len(found.partitions) == partitions

        wait_for(f"{partitions} partitions of {topic}", known)

    def write(self, partitions: Iterable[Partition], count: int = 5) -> None:
        """Append records to each partition."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            self.written[message.topic(), message.partition()] += 1

        for topic, partition in [*partitions] * count:
            self._producer.produce(topic, b"x", partition=partition, on_delivery=delivered)
        assert self._producer.flush(_TIMEOUT_S) == 0

    def committed(self, group: str) -> dict[Partition, int]:
        """What the coordinator says is committed; nothing while it loads, or is another one.

        librdkafka's administrator ends the process when a coordinator moves while it asks.
        """
        try:
            found = self._asker.list_group_offsets(group)[group]
        except errors.KafkaError as error:
            if not error.retriable:
                raise
            self._asker.close()
            self._asker = self._new_asker()
            return {}
        return {(one.topic, one.partition): held.offset for one, held in found.items()}

    def _new_asker(self) -> Any:
        servers = self.place["bootstrap.servers"].split(",")
        return KafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=_ASK_MS)

    def commit(self, group: str, offsets: Mapping[Partition, int]) -> bool:
        """Commit for a group without members; return whether that was done."""
        rows = [TopicPartition(*one, offset) for one, offset in offsets.items()]
        asked = ConsumerGroupTopicPartitions(group, rows)
        try:
            done = self._admin.alter_consumer_group_offsets([asked])[group].result(_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return False
        return all(one.error is None for one in done.topic_partitions)

    def wait_committed(self, group: str, partitions: Iterable[Partition]) -> None:
        """Wait until all that was written is committed."""
        ends = {one: self.written[one] for one in partitions}
        wait_for(f"commits of {group}", lambda: self.reached(group, ends), _GOES_ON_S)

    def reached(self, group: str, ends: Mapping[Partition, int]) -> bool:
        """Return whether a group has committed up to these offsets."""
        committed = self.committed(group)
        return all(committed.get(one, 0) >= end for one, end in ends.items())

    def generations(self, group: str) -> int:
        """How many generations of a group have started, as the decision log tells it."""
        with EmbeddedLogReader(self._folders.decisions) as reader:
            bodies = [
                orjson.loads(record.payload)
                for record in reader.read(reader.start_offset(), reader.end_offset())
                if record.kind == DecisionKind.CHANGE_GROUP and group.encode() in record.payload
            ]
        changes = [
            change["change"]
            for body in bodies
            if body["group"] == group
            for step in body["steps"]
            for change in step.get("changes", ())
        ]
        return changes.count("generation_started")


def shared_out(members: Iterable[Members], partitions: Iterable[Partition], count: int) -> bool:
    """Return whether these processes' members own each partition once, and `count` of them one."""
    owned = [has for one in members for has in one.owned.values()]
    owners = Counter(partition for has in owned for partition in has)
    return owners == Counter(partitions) and len(owned) == count


def consumed(members: Sequence[Members], records: Set[Record]) -> Counter[Record]:
    """Return how often each record was consumed by any of them, once they have told of all of
    these: what they have committed they may not have told yet.
    """

    def told() -> Counter[Record]:
        return sum((one.consumed.copy() for one in members), Counter())

    wait_for("what was consumed", lambda: records <= told().keys(), _GOES_ON_S)
    return told()


def written(topics: Topics, topic: str) -> set[Record]:
    """Return all records of a topic."""
    return {
        (name, partition, offset)
        for (name, partition), count in topics.written.items()
        if name == topic
        for offset in range(count)
    }
