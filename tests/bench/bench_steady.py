"""A large cluster on an ordinary day: nothing at all, then ISRs that shrink and grow all the time.

Run: python -m tests.bench.bench_steady [--per-s N] [--seconds N] [--idle-seconds N] [--set
key=value ...]. One JSON object per line. 100 stub brokers lead 10,000 partitions of three replicas.
As brokers do, each has one AlterPartition request in flight, and asks in the next for all that came
up meanwhile. A change is timed from when it comes up to its answer. Where they are followed without
lag the last third of the time takes no longer than the first. More changes than can be followed
(--per-s 5000) wait at the brokers: `most_waiting` events wait to be folded, and memory does not
grow with the time.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from state.protocol_errors import ProtocolError
from streaming.sockets.status_socket import fetch_status
from streaming.wire.apis import ApiKey
from streaming.wire.frames import frame
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response
from tests.bench.load import PARTITIONS_PER_TOPIC, create_topics, round_robin, topic_id
from tests.bench.processes import cores_between, cpu_s, high_water_mb, processes, resident_mb
from tests.bench.report import emit, percentiles, show
from tests.bench.system import Log, System, altered

BROKERS = 100
PARTITIONS = 10_000
VERSION = 3
ANSWER_TIMEOUT_S = 60.0
THIRDS = ("first", "second", "last")
WATCH_S = 1.0


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
        self.timed_out = 0

    async def run(self, port: int, per_s: float, seconds: float) -> None:
        """Ask for changes, each due at its time, until time is over; `took` gets (due, seconds to
        the answer).
        """
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        began = time.perf_counter() + self._broker_id / BROKERS / per_s
        asked, changes = 0, round(per_s * seconds)
        while asked < changes and (now := time.perf_counter()) < began + seconds:
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
        while True:
            answer = await asyncio.wait_for(self._answer(body), ANSWER_TIMEOUT_S)
            if answer["error_code"] != ProtocolError.REQUEST_TIMED_OUT:
                break
            self.timed_out += 1  # and asks the same again, as a broker does
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


class Watch:
    """Looks from time to time at how many events wait to be folded, and at resident memory."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.most_waiting = 0
        self.resident_mb: list[dict[str, float]] = []

    def _look(self) -> None:
        while not self._ended.wait(WATCH_S):
            waiting = fetch_status(self._system.data_dir, ANSWER_TIMEOUT_S)["job"]["lag"]
            self.most_waiting = max(self.most_waiting, waiting)
            self.resident_mb.append(resident_mb(processes(self._system.supervisor)))

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def cpu_of(system: System, act: Any) -> dict[str, float]:
    """Do something; return the cores that each kind of process used meanwhile, and all."""
    before, began = cpu_s(processes(system.supervisor)), time.perf_counter()
    act()
    took_s = time.perf_counter() - began
    cores = cores_between(before, cpu_s(processes(system.supervisor)), took_s)
    return {**cores, "all_cores": sum(cores.values())}


def memory_of(system: System) -> dict[str, float]:
    """Return the most memory that each kind of process had so far, and the sum."""
    found = high_water_mb(processes(system.supervisor))
    return {**found, "all_mb": sum(found.values())}


def ask_all(asking: list[Leader], port: int, per_s: float, seconds: float) -> None:
    """Let all leaders ask side by side."""

    async def all_of_them() -> None:
        async with asyncio.TaskGroup() as tasks:
            for one in asking:
                tasks.create_task(one.run(port, per_s / BROKERS, seconds))

    asyncio.run(all_of_them())


def idle(system: System, seconds: float) -> dict[str, Any]:
    """Let nothing happen."""
    events = Log(system.folders.events)
    before = events.end()
    cores = cpu_of(system, lambda: time.sleep(seconds))
    return emit("idle", events=events.end() - before, **cores, **memory_of(system))


def changed(
    system: System, asking: list[Leader], per_s: float, seconds: float
) -> list[dict[str, Any]]:
    """Let ISRs change; return what it took, and the latencies in the thirds of the time."""
    events, outcomes = Log(system.folders.events), Log(system.folders.outcomes)
    before, first = outcomes.end(), events.end()
    began = time.perf_counter()
    with Watch(system) as watch:
        cores = cpu_of(system, lambda: ask_all(asking, system.gateway_port, per_s, seconds))
        took_s = time.perf_counter() - began
    ends = [one["end_offset"] or 0 for one in outcomes.bodies("persisted", before)]
    changes = [one for leader in asking for one in leader.took]
    line = emit(
        "isr_changes",
        asked_per_s=per_s,
        answered_per_s=len(changes) / took_s,
        not_asked=round(per_s * seconds) - len(changes),
        requests=sum(one.requests for one in asking),
        timed_out=sum(one.timed_out for one in asking),
        events=events.end() - first,
        batches=len(ends),
        most_in_a_batch=max((b - a for a, b in pairwise([first, *sorted(ends)])), default=0),
        most_waiting=watch.most_waiting,
        **cores,
        **memory_of(system),
    )
    return [line, *(third(changes, watch, number, seconds) for number in range(len(THIRDS)))]


def third(
    changes: list[tuple[float, float]], watch: Watch, number: int, seconds: float
) -> dict[str, Any]:
    """Return the latencies of changes due in a third of the time, and the memory then: the most of
    all processes together, and the median of each kind.
    """
    took = [1e3 * took for due, took in changes if int(due * len(THIRDS) / seconds) == number]
    looks = watch.resident_mb
    mine = looks[len(looks) * number // len(THIRDS) : len(looks) * (number + 1) // len(THIRDS)]
    resident = {}
    if mine:
        resident = {kind: float(np.median([one[kind] for one in mine])) for kind in mine[0]}
        resident["resident_mb"] = max(sum(one.values()) for one in mine)
    latency = percentiles(took) if took else {}
    return emit(f"{THIRDS[number]}_third", changes=len(took), **latency, **resident)


def run(given: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    seconds: float = given.seconds
    idle_s = seconds if given.idle_seconds is None else given.idle_seconds
    with System(folder, given.overrides) as system:
        found = system.stubs.ask("start", ids=list(range(1, BROKERS + 1)))
        create_topics(system.session, PARTITIONS, BROKERS)
        system.control(300)
        asking = leaders({int(id_): epoch for id_, epoch in found.items()})
        return [idle(system, idle_s), *changed(system, asking, given.per_s, seconds)]


def show_all(lines: list[dict[str, Any]]) -> None:
    """Print who used what, what came of the changes, and the thirds."""
    both, asked, thirds = lines[:2], lines[1:2], lines[2:]
    used = ("bench", "_cores", "_mb")
    show("An ordinary day", [_of(one, lambda name: name.endswith(used)) for one in both])
    show("ISR changes", [_of(one, lambda name: not name.endswith(used)) for one in asked])
    show("Latency and resident memory in the thirds of the time", thirds)


def _of(line: dict[str, Any], chosen: Callable[[str], bool]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if chosen(name)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-s", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--idle-seconds", type=float, help="instead of as many")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="helmstream-bench-") as folder:
        lines = run(given, Path(folder))
    show_all(lines)


if __name__ == "__main__":
    main()
