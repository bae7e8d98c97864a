"""Members of a group as a process of their own, which can be killed or paused.

It tells what it does as Kafka's VerifiableConsumer does: a line of JSON for each thing, and with it
the member's number. It ends well when it is told to end.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

import orjson
from confluent_kafka import Consumer, KafkaException
from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata
from kafka.errors import KafkaError

from streaming.log.kafka_messages import make_message_classes

_POLL_S = 0.2
_LONG_POLL_MS = 5_000
"""A leader of kafka-python 3.0 that rejoins because metadata changed stands still for good when its
poll ends before the rebalance does: the next one sees nothing to join for (with any coordinator).
"""
_lock = threading.Lock()

Say = Callable[..., None]


def _rows(partitions: Iterable[Any]) -> list[dict[str, Any]]:
    return [{"topic": one.topic, "partition": one.partition} for one in partitions]


def consume_with_librdkafka(
    topic: str, config: dict[str, Any], ended: threading.Event, say: Say
) -> None:
    """Consume and commit record by record until the end. A topic with ^ in front is a pattern."""
    consumer = Consumer({"log_level": 0, **config})
    consumer.subscribe(
        [topic],
        on_assign=lambda _, found: say("partitions_assigned", partitions=_rows(found)),
        on_revoke=lambda _, lost: say("partitions_revoked", partitions=_rows(lost)),
    )
    while not ended.is_set():
        message = consumer.poll(_POLL_S)
        if message is None or message.error():
            continue
        at = {"topic": message.topic(), "partition": message.partition()}
        span = {"minOffset": message.offset(), "maxOffset": message.offset()}
        say("records_consumed", partitions=[at | span])
        try:
            consumer.commit(message=message, asynchronous=False)
        except KafkaException as error:
            say("offsets_committed", success=False, error=str(error))
        else:
            say("offsets_committed", success=True, offsets=[at | {"offset": message.offset() + 1}])
    consumer.close()


class _Listener(ConsumerRebalanceListener):
    def __init__(self, say: Say) -> None:
        self._say = say

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._say("partitions_assigned", partitions=_rows(assigned))

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._say("partitions_revoked", partitions=_rows(revoked))


def consume_with_kafka_python(
    topic: str, config: dict[str, Any], ended: threading.Event, say: Say
) -> None:
    """Consume and commit what each poll brings until the end. A topic with ^ in front is a
    pattern.
    """
    consumer = KafkaConsumer(**config)
    chosen: dict[str, Any] = {"pattern": topic} if topic[0] == "^" else {"topics": [topic]}
    consumer.subscribe(listener=_Listener(say), **chosen)
    ends: dict[Any, int] = {}  # of what was consumed, and is not committed yet
    while not ended.is_set():
        found = consumer.poll(_LONG_POLL_MS)
        if found:
            spans = [
                {"topic": at.topic, "partition": at.partition}
                | {"minOffset": records[0].offset, "maxOffset": records[-1].offset}
                for at, records in found.items()
            ]
            say("records_consumed", partitions=spans)
        ends |= {at: records[-1].offset + 1 for at, records in found.items()}
        ends = {at: end for at, end in ends.items() if at in consumer.assignment()}
        if not ends:
            continue
        try:
            consumer.commit({at: OffsetAndMetadata(end, "", -1) for at, end in ends.items()})
        except KafkaError as error:
            say("offsets_committed", success=False, error=type(error).__name__)
        else:
            rows = [{**_rows([at])[0], "offset": end} for at, end in ends.items()]
            say("offsets_committed", success=True, offsets=rows)
            ends = {}
    consumer.close()


CLIENTS = {"librdkafka": consume_with_librdkafka, "kafka-python": consume_with_kafka_python}


def main(client: str, topic: str, count: str, config: str) -> None:
    """Run `count` members until SIGTERM; config is the client's, as JSON."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())

    def tell(number: int) -> Say:
        def say(name: str, **more: Any) -> None:
            line = orjson.dumps({"name": name, "member": number, **more})
            with _lock:
                sys.stdout.buffer.write(line + b"\n")
                sys.stdout.buffer.flush()

        return say

    make_message_classes()
    members = [
        threading.Thread(
            target=CLIENTS[client], args=(topic, orjson.loads(config), ended, tell(number))
        )
        for number in range(int(count))
    ]
    for member in members:
        member.start()
    for member in members:
        member.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
