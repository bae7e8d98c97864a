"""Records that flow throughout: producers that are replaced when they are stuck, and consumers."""

from __future__ import annotations

import time
from collections.abc import Sequence

from kafka.errors import KafkaTimeoutError

from streaming.demo.consumer import Consumer
from streaming.demo.producer import Acked, Producer
from streaming.demo.verdict import Verdict, judge, read_back

_STUCK_S = 45.0
_CONSUMERS = 2
_TRIES = 5


class Traffic:
    """Producers and consumers of one topic.

    A client that gets no ack for long although partitions could give one is stuck: then a further
    one is started. What either was promised counts.
    """

    def __init__(self, bootstrap_servers: Sequence[str], topic: str, partitions: int) -> None:
        """Start; raises KafkaError."""
        self._servers = list(bootstrap_servers)
        self._topic = topic
        self._partitions = partitions
        self._producers: list[Producer] = []
        self._seen_acks = (0, time.monotonic())
        self._add_producer()
        self._consumers = [Consumer(self._servers, topic, partitions) for _ in range(_CONSUMERS)]
        for consumer in self._consumers:
            consumer.start()

    @property
    def producers(self) -> int:
        """How many producers there were."""
        return len(self._producers)

    def revive(self, acks_are_possible: bool) -> None:
        """Add a producer if there was no ack for long."""
        acks = self._producers[-1].acked_count
        seen, since_s = self._seen_acks
        now_s = time.monotonic()
        if acks != seen or not acks_are_possible:
            self._seen_acks = (acks, now_s)
        elif now_s - since_s > _STUCK_S:
            self._add_producer()
            self._seen_acks = (0, now_s)

    def silent(self, since_s: float) -> list[str]:
        """Return the partitions that acked nothing that the newest producer sent after a
        time.monotonic().
        """
        newest = self._producers[-1]
        silent = newest.partitions_without_ack(since_s)
        return [
            f"no ack of {self._topic}-{partition}: {newest.last_error!r}" for partition in silent
        ]

    def stop(self) -> None:
        """Stop the producers after their last acks, and the consumers."""
        for producer in self._producers:
            producer.stop()
        for consumer in self._consumers:
            consumer.stop()

    def verdict(self) -> tuple[Verdict, int, int]:
        """Return what became of what was acked, how many records consumers saw, and how many of
        those are not where they saw them. Raises NotReadable, KafkaError.
        """
        stored = read_back(self._servers, self._topic, range(self._partitions))
        acked: list[Acked] = [one for producer in self._producers for one in producer.acked]
        seen = [record for consumer in self._consumers for record in consumer.values.items()]
        misread = sum(stored.get(place) != value for place, value in seen)
        return judge(acked, stored), len(seen), misread

    def _add_producer(self) -> None:
        name = f"{len(self._producers)}:"
        for tries_left in reversed(range(_TRIES)):
            try:
                producer = Producer(self._servers, self._topic, self._partitions, name)
                break
            except (
                KafkaTimeoutError
            ):  # it takes servers by chance, and one that is paused is waited for
                if not tries_left:
                    raise
        self._producers.append(producer)
        producer.start()
