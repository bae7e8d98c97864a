"""A cluster of Kafka Connect whose workers share tasks as a group, while servers die: each line of
a file comes into a topic and out of it.

Workers vote for Connect's own protocols; the source writes in transactions, the sink's tasks are a
consumer group. That a line comes out twice when a worker is killed is Connect's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from streaming.demo.cluster import DemoCluster
from streaming.supervisor.processes import FRONT, JOB
from streaming.zk.client import ZkSession
from tests.e2e.demo_cluster import start_again, take_control
from tests.e2e.group_stage import WITH_TRANSACTIONS, taken_over
from tests.e2e.waiting import WAIT_S, wait_for
from tests.fixtures.connect_worker import ConnectWorker

LINES = 200
TOPIC = "lines"
PARTITIONS = 3

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.parametrize("demo", [WITH_TRANSACTIONS], indirect=True),
    pytest.mark.usefixtures("plain_job"),
]


class Files:
    """A file that is written, and one that the sink writes."""

    def __init__(self, folder: Path) -> None:
        self.source, self.sink = folder / "source.txt", folder / "sink.txt"
        self.source.touch()
        self.written: list[str] = []

    def write(self) -> None:
        lines = [f"line {len(self.written) + number}" for number in range(LINES)]
        with self.source.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        self.written += lines

    def has_all(self) -> bool:
        return self.sink.exists() and set(self.written) <= set(self.sink.read_text().splitlines())

    def connectors(self) -> dict[str, dict[str, Any]]:
        file = "org.apache.kafka.connect.file.FileStream"
        return {
            "reads": {
                "connector.class": f"{file}SourceConnector",
                "file": str(self.source),
                "topic": TOPIC,
            },
            "writes": {
                "connector.class": f"{file}SinkConnector",
                "file": str(self.sink),
                "topics": TOPIC,
                "tasks.max": str(PARTITIONS),
                "consumer.override.session.timeout.ms": "6000",
            },
        }


@pytest.fixture(params=["3.9.2", "4.3.1"])
def workers(
    request: pytest.FixtureRequest, demo: DemoCluster, tmp_path: Path
) -> Iterator[list[ConnectWorker]]:
    take_control(demo)
    demo.create_topic(TOPIC, PARTITIONS)
    with ExitStack() as closing:
        made = []
        for number in range(2):
            brokers = demo.embedded.bootstrap_servers
            folder = tmp_path / f"worker-{number}"
            worker = ConnectWorker(f"worker {number}", folder, request.param, brokers)
            closing.callback(worker.kill)
            worker.start()
            made.append(worker)
        yield made


def hosts_of_tasks(worker: ConnectWorker) -> set[str]:
    """The workers that run a task."""
    states = [worker.ask("GET", f"/connectors/{name}/status") for name in ("reads", "writes")]
    return {
        task["worker_id"]
        for state in states
        for task in (state or {}).get("tasks", ())
        if task["state"] == "RUNNING"
    }


def test_each_line_comes_through(
    demo: DemoCluster, session: ZkSession, workers: list[ConnectWorker], tmp_path: Path
) -> None:
    files = Files(tmp_path)
    wait_for("our coordination", lambda: taken_over(demo))
    for name, config in files.connectors().items():
        created = {"name": name, "config": config}
        wait_for(name, lambda made=created: workers[0].ask("POST", "/connectors", made))
    wait_for("tasks on both workers", lambda: len(hosts_of_tasks(workers[0])) == 2)
    files.write()
    wait_for("all lines", files.has_all)
    for deaths in ((JOB,), (FRONT, JOB)):
        for role in deaths:
            demo.supervisor.kill(role)
        files.write()
        wait_for(f"all lines after {deaths}", files.has_all)
    workers[1].kill()
    files.write()
    wait_for("all lines with one worker", files.has_all)
    workers[1].start()
    demo.broker(2).kill()
    files.write()
    wait_for("all lines without a broker", files.has_all)
    start_again(demo, session, 2, WAIT_S)
    wait_for("tasks on both workers again", lambda: len(hosts_of_tasks(workers[0])) == 2)
    demo.stop_ours()
    files.write()
    wait_for("all lines with the brokers' coordinator", files.has_all)
    demo.start_ours()
    wait_for("our coordination again", lambda: taken_over(demo))
    files.write()
    wait_for("all lines in the end", files.has_all)
