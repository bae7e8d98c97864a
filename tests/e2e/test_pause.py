"""A pause outlives the job: a broker dies meanwhile, and its leaders wait for the resume."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.cli import main
from streaming.demo.cluster import DemoCluster
from streaming.demo.steps import CRASHED
from streaming.sockets.status_socket import fetch_status
from streaming.supervisor.processes import JOB
from tests.e2e.waiting import wait_for

TOPIC, PARTITIONS = "kept", 6

pytestmark = [
    pytest.mark.timeout(420),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
]


def order(demo: DemoCluster, *words: str) -> None:
    """Run one of helmstream's commands on the data folder."""
    with pytest.raises(SystemExit) as left:
        main([*words, "--data-dir", str(demo.folders.root), "--timeout", "60"])
    assert left.value.code in {0, None}


def folded(demo: DemoCluster, *, since: int) -> dict[str, Any] | None:
    """The status once a job beside that of an earlier pid has folded that the broker is gone."""
    status = fetch_status(demo.folders.root, 10)
    job = status["job"]
    done = job["pid"] not in {None, since} and not job["lag"]
    return status if done and CRASHED not in status["brokers"] else None


def test_a_pause_outlives_the_job(demo: DemoCluster, admin: Any) -> None:
    demo.create_topic(TOPIC, PARTITIONS)
    seen = wait_for("the topic", lambda: (s := demo.look().seen()) and None not in s and s)
    wait_for("full ISRs", lambda: all(len(one.isr) == 3 for one in demo.look().seen()))
    assert any(one.leader == CRASHED for one in seen)

    order(demo, "pause", "--reason", "a look around")
    before = demo.look().partitions
    killed = fetch_status(demo.folders.root, 10)["job"]["pid"]
    demo.supervisor.kill(JOB)
    demo.broker(CRASHED).kill()
    wait_for("the broker's end", lambda: CRASHED not in demo.look().brokers)
    status = wait_for("another job at the log's end", lambda: folded(demo, since=killed))
    assert status["paused"]
    assert demo.look().partitions == before, "a leader was elected or an ISR written in a pause"

    order(demo, "resume")

    def others_lead() -> bool:
        states = [one for one in demo.look().seen() if one is not None]
        return len(states) == PARTITIONS and all(
            one.leader != CRASHED and CRASHED not in one.isr for one in states
        )

    wait_for("other leaders", others_lead)
