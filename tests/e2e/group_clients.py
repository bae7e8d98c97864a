"""Unmodified clients that consume as members of a group and commit all the time."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from kafka import KafkaConsumer
from kafka.errors import KafkaError as PythonKafkaError

from tests.e2e.group_processes import java_command
from tests.e2e.waiting import wait_for

TOPIC = "t"
SESSION_MS = 10_000
_POLL_S = 0.2
_PATIENT_POLL_MS = 10_000
"""Longer than a rebalance takes where nobody is away: a kafka-python whose poll ends before it does
may stand still for good, with any coordinator (docs/groups.md). Records end a poll at once.
"""
_JOIN_S = 120.0
_GOES_ON_S = 180.0

Offsets = dict[int, int]
"""Committed offset by partition."""


class Client(Protocol):
    """What differs between clients."""

    def commits(self) -> Iterator[Offsets | str | None]:
        """Consume, and yield what each commit was acknowledged for, or the name of its error; None
        when there was nothing to commit.
        """

    def close(self) -> None:
        """Leave the group."""


class Member(threading.Thread):
    """A member of a group. acked: what was acknowledged; acked_s: when, by the monotonic clock;
    failures: errors of commits, after which it goes on as clients do.
    """

    def __init__(self, group: str, client: Client) -> None:
        super().__init__(name=f"member of {group}", daemon=True)
        self.group = group
        self.acked: Offsets = {}
        self.acked_s: list[float] = []
        self.failures: list[str] = []
        self.error: BaseException | None = None
        self._client = client
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            for done in self._client.commits():
                if self._ended.is_set():
                    return
                self._take(done)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self.error = error

    def _take(self, done: Offsets | str | None) -> None:
        if isinstance(done, str):
            self.failures.append(done)
        elif done:
            self.acked_s.append(time.monotonic())
            for partition, offset in done.items():
                self.acked[partition] = max(offset, self.acked.get(partition, 0))

    def goes_on(self) -> None:
        """Wait for commits after now."""
        before = len(self.acked_s)
        wait_for(f"{self.name} commits", lambda: len(self.acked_s) > before + 2, _GOES_ON_S)

    def longest_gap_s(self, since_s: float) -> float:
        """Return the longest time between two acknowledged commits, the later one after since_s."""
        return max(after - before for before, after in pairwise([*self.acked_s]) if after > since_s)

    def stop(self) -> None:
        self._ended.set()
        self.join(_JOIN_S)
        self._client.close()


@contextmanager
def producing(client: Mapping[str, Any], brokers: Sequence[str]) -> Iterator[None]:
    """Have records come all the time; client: how librdkafka connects."""
    producer = Producer({**client, "bootstrap.servers": ",".join(brokers)})
    ended = threading.Event()

    def produce() -> None:
        while not ended.wait(0.05):
            producer.produce(TOPIC, b"")
            producer.poll(0)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert producer.flush(_JOIN_S) == 0


class PythonClient:
    """kafka-python."""

    def __init__(self, brokers: Sequence[str], group: str, **config: Any) -> None:
        self._consumer = KafkaConsumer(
            TOPIC,
            group_id=group,
            bootstrap_servers=list(brokers),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=1_000,
            **config,
        )

    def commits(self) -> Iterator[Offsets | str | None]:
        while True:
            try:
                self._consumer.poll(_PATIENT_POLL_MS)  # a refused connection may come out of it
                assigned = self._consumer.assignment()
                positions = {one.partition: self._consumer.position(one) for one in assigned}
                self._consumer.commit()
            except PythonKafkaError as error:
                yield type(error).__name__
            else:
                yield {one: at for one, at in positions.items() if at is not None}

    def close(self) -> None:
        self._consumer.close()


class RdClient:
    """confluent-kafka, which is librdkafka."""

    def __init__(self, brokers: Sequence[str], group: str, **config: Any) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": ",".join(brokers),
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 1_000,
                "log_level": 0,
                **{name.replace("_", "."): value for name, value in config.items()},
            }
        )
        self._consumer.subscribe([TOPIC])

    def commits(self) -> Iterator[Offsets | str | None]:
        while True:
            message = self._consumer.poll(_POLL_S)
            if message is None or message.error():
                if message is not None and message.error().code() == KafkaError.NOT_COORDINATOR:
                    self._consumer.assign(self._consumer.assignment())  # docs/groups.md
                yield None
                continue
            try:
                done = self._consumer.commit(message=message, asynchronous=False)
            except KafkaException as error:
                yield str(error.args[0].name())
            else:
                yield {one.partition: one.offset for one in done or () if not one.error}

    def close(self) -> None:
        self._consumer.close()


class RestlessClient:
    """One that leaves every few seconds and joins anew, so that its group is always rebalancing."""

    def __init__(self, start: Callable[[], Client], stay_s: float) -> None:
        self._start = start
        self._stay_s = stay_s
        self._present = start()

    def commits(self) -> Iterator[Offsets | str | None]:
        while True:
            leaves_s = time.monotonic() + self._stay_s
            for done in self._present.commits():
                yield done
                if time.monotonic() > leaves_s:
                    break
            self._present.close()
            self._present = self._start()

    def close(self) -> None:
        self._present.close()


class JavaClient:
    """Kafka's own consumer, in its VerifiableConsumer, which prints what it does."""

    def __init__(self, brokers: Sequence[str], group: str, folder: Path, *options: str) -> None:
        named = {
            "--bootstrap-server": ",".join(brokers),
            "--topic": TOPIC,
            "--group-id": group,
            "--session-timeout": str(SESSION_MS),
            "--reset-policy": "earliest",
        }
        words = [*(word for pair in named.items() for word in pair), *options]
        self._process = subprocess.Popen(
            java_command("org.apache.kafka.tools.VerifiableConsumer", folder, words),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def commits(self) -> Iterator[Offsets | str | None]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = orjson.loads(line)
            if said["name"] != "offsets_committed":
                yield None
            elif said["success"]:
                yield {one["partition"]: one["offset"] for one in said["offsets"]}
            else:
                yield str(said.get("error"))

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_JOIN_S)
        finally:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
