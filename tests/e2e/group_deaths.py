"""Front and job die at any moment while groups commit."""

from __future__ import annotations

import random
import time

from streaming.demo.cluster import DemoCluster
from streaming.supervisor.processes import FRONT, JOB
from tests.e2e.group_clients import RdClient, RestlessClient
from tests.e2e.group_stage import Stage, coordinators, taken_over
from tests.e2e.waiting import wait_for

START_S = 240.0
"""A busy machine takes its time to start Spark."""

BACKOFF_S = 0.2
"""Who is killed on purpose need not wait longer each time."""

STAYS_S = 3.0
"""How long a restless member stays."""


def die_often(demo: DemoCluster, stage: Stage, deaths: int, looked_at: float) -> None:
    """Front, job, or both die at any moment, also while groups are taken over or rebalance; in the
    end the brokers have what was acknowledged, too.
    """
    chance = random.Random(deaths)
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.join_others()
    stage.join("restless", RdClient(stage.brokers, "restless"))
    anew = RestlessClient(lambda: RdClient(stage.brokers, "restless"), STAYS_S)
    stage.join("restless", anew)
    for _ in range(deaths):
        for role in chance.choice([(JOB,), (FRONT,), (JOB, FRONT), (FRONT, JOB)]):
            demo.supervisor.kill(role)
            demo.supervisor.roles[role].back_off.next_s = BACKOFF_S
        time.sleep(chance.choice([0, 1, 5, 20]))
        if chance.random() < looked_at:
            stage.check()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.check()
    demo.kill_ours()
    wait_for("the brokers' leadership", lambda: coordinators(demo) == {1, 2, 3})
    stage.check()
