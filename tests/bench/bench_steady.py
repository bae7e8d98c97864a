"""A large cluster on an ordinary day: nothing at all, then ISRs that shrink and grow all the time.

Run: python -m tests.bench.bench_steady [--per-s N] [--seconds N] [--set key=value ...]. One JSON
object per line. 100 stub brokers lead 10,000 partitions of three replicas. As brokers do, each has
one AlterPartition request in flight, and asks in the next for all that came up meanwhile. A change
is timed from when it comes up to its answer. Where they are followed without lag the last third of
the time takes no longer than the first.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streaming.wire.apis import ApiKey
from streaming.wire.frames import frame
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from tests.bench.load import PARTITIONS_PER_TOPIC, create_topics, round_robin, topic_id
from tests.bench.processes import cores_between, cpu_s, processes
from tests.bench.report import emit, percentiles, show
from tests.bench.system import Log, System, altered

BROKERS = 100
PARTITIONS = 10_000
VERSION = 3
ANSWER_TIMEOUT_S = 60.0
THIRDS = ("first", "second", "last")


@dataclass(slots=True)
class Partition:
    """What its leader knows of it; `partition_epoch` is the version of its znode."""

    topic_id: Any
    number: int
    replicas: list[int]
    isr: list[int]
    partition_epoch: int = 0


class Leader:
    """A broker's changes: one more every so often, all that came up in one request."""

    def __init__(self, broker_id: int, epochs: dict[int, int], led: list[Partition]) -> None:
        self._broker_id = broker_id
        self._epochs = epochs
        self._led = led
        self._correlation_id = 0
        self.took: list[tuple[float, float]] = []
        self.requests = 0

    async def run(self, port: int, per_s: float, seconds: float) -> None:
        """Ask for changes, each due at its time; `took` gets (due, seconds to the answer)."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        began = time.perf_counter() + self._broker_id / BROKERS / per_s
        asked, changes = 0, round(per_s * seconds)
        while asked < changes:
            now = time.perf_counter()
            due = min(int((now - began) * per_s) + 1, changes, asked + len(self._led))
            if due <= asked:
                await asyncio.sleep(began + asked / per_s - now)
                continue
            await self._ask([self._led[one % len(self._led)] for one in range(asked, due)])
            ended = time.perf_counter()
            for one in range(asked, due):
                self.took.append((one / per_s, ended - began - one / per_s))
            asked = due
        self._writer.close()

    async def _ask(self, partitions: list[Partition]) -> None:
        """Take the last replica of each partition out of its ISR, or back in."""
        topics: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        by_number = {(one.topic_id, one.number): one for one in partitions}
        for one in partitions:
            one.isr = one.replicas[:-1] if len(one.isr) == len(one.replicas) else one.replicas
            change = altered(one.number, one.isr, 0, one.partition_epoch, self._epochs)
            topics[one.topic_id].append(change)
        body = {
            "broker_id": self._broker_id,
            "broker_epoch": self._epochs[self._broker_id],
            "topics": [{"topic_id": id_, "partitions": asked} for id_, asked in topics.items()],
        }
        answer = await asyncio.wait_for(self._answer(body), ANSWER_TIMEOUT_S)
        assert answer["error_code"] == 0, answer
        for topic in answer["topics"]:
            for one in topic["partitions"]:
                assert one["error_code"] == 0, answer
                number = one["partition_index"]
                by_number[topic["topic_id"], number].partition_epoch = one["partition_epoch"]

    async def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        self._correlation_id += 1
        self.requests += 1
        api = ApiKey.ALTER_PARTITION
        request = encode_request(api, VERSION, self._correlation_id, "bench", body)
        self._writer.write(frame(request))
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return decode_response(api, VERSION, await self._reader.readexactly(size))[1]


def leaders(epochs: dict[int, int]) -> list[Leader]:
    """Return a leader for each broker, with the partitions that `create_topics` gives it."""
    led: dict[int, list[Partition]] = defaultdict(list)
    for row, replicas in enumerate(round_robin(PARTITIONS, BROKERS).tolist()):
        number = row % PARTITIONS_PER_TOPIC
        led[replicas[0]].append(Partition(topic_id(row - number), number, replicas, replicas))
    return [Leader(broker_id, epochs, led[broker_id]) for broker_id in epochs]


def cpu_of(system: System, act: Any) -> dict[str, float]:
    """Do something; return the cores that each kind of process used meanwhile, and all."""
    before, began = cpu_s(processes(system.supervisor)), time.perf_counter()
    act()
    took_s = time.perf_counter() - began
    cores = cores_between(before, cpu_s(processes(system.supervisor)), took_s)
    return {**cores, "all_cores": sum(cores.values())}


def run(per_s: float, seconds: float, overrides: list[str], folder: Path) -> list[dict[str, Any]]:
    with System(folder, overrides) as system:
        found = system.stubs.ask("start", ids=list(range(1, BROKERS + 1)))
        create_topics(system.session, PARTITIONS, BROKERS)
        system.control(300)
        asking = leaders({int(id_): epoch for id_, epoch in found.items()})
        events, outcomes = Log(system.folders.events), Log(system.folders.outcomes)
        before = events.end(), outcomes.end()
        cores = cpu_of(system, lambda: time.sleep(seconds))
        lines = [emit("idle", events=events.end() - before[0], **cores)]
        before = events.end(), outcomes.end()

        async def ask_all() -> None:
            port = system.gateway_port
            async with asyncio.TaskGroup() as tasks:
                for one in asking:
                    tasks.create_task(one.run(port, per_s / BROKERS, seconds))

        began = time.perf_counter()
        cores = cpu_of(system, lambda: asyncio.run(ask_all()))
        took_s = time.perf_counter() - began
        batches = len(outcomes.bodies("persisted", before[1]))
    changes = [one for leader in asking for one in leader.took]
    lines.append(
        emit(
            "isr_changes",
            asked_per_s=per_s,
            answered_per_s=len(changes) / took_s,
            requests=sum(one.requests for one in asking),
            batches=batches,
            **cores,
        )
    )
    for number, third in enumerate(THIRDS):
        took = [1e3 * took for due, took in changes if int(due * 3 / seconds) == number]
        lines.append(emit(f"{third}_third", changes=len(took), **percentiles(took)))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-s", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="helmstream-bench-") as folder:
        lines = run(given.per_s, given.seconds, given.overrides, Path(folder))
    show("An ordinary day", lines)


if __name__ == "__main__":
    main()
