"""Groups of brokers that name no leader epoch when they follow us, but ask where the last one
ended: with an inter-broker protocol below 2.7, and brokers of 2.7.

Everything is real but Spark.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streaming.demo.cluster import DemoCluster
from streaming.supervisor.processes import FRONT, JOB
from streaming.zk.client import ZkSession
from tests.e2e.demo_cluster import brokers_of, start_again
from tests.e2e.group_deaths import START_S, die_often
from tests.e2e.group_stage import (
    TAKING_GROUPS_OVER,
    Stage,
    coordinators,
    taken_over,
)
from tests.e2e.group_transactions import Transactional
from tests.e2e.random_checks import wait_until_finished
from tests.e2e.upgrading import Step, raise_brokers, raise_ours
from tests.e2e.waiting import wait_for

DEATHS = 50

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
]


@pytest.mark.parametrize(
    "demo",
    [
        brokers_of("2.4.1", "2.4", cluster=TAKING_GROUPS_OVER),
        brokers_of("2.1.1", "2.1", slow=True, cluster=TAKING_GROUPS_OVER),
        brokers_of("2.2.2", "2.2", slow=True, cluster=TAKING_GROUPS_OVER),
        brokers_of("2.3.1", "2.3", slow=True, cluster=TAKING_GROUPS_OVER),
        brokers_of("2.5.1", "2.5", slow=True, cluster=TAKING_GROUPS_OVER),
        brokers_of("2.6.3", "2.6", slow=True, cluster=TAKING_GROUPS_OVER),
        brokers_of("2.7.2", "2.7", slow=True, cluster=TAKING_GROUPS_OVER),
        brokers_of("3.9.2", "2.4", slow=True, cluster=TAKING_GROUPS_OVER),
    ],
    indirect=True,
)
def test_groups_live_through_every_death(
    demo: DemoCluster, session: ZkSession, stage: Stage
) -> None:
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.join_others()
    stage.check()
    exact = Transactional(stage.brokers, "exact")
    exact.begin(6)
    with stage.gaps("death of a job without Spark"):
        demo.supervisor.kill(JOB)
    exact.commit()
    assert exact.committed() == 6, "LOST: a transaction that the job's death fell into"

    demo.broker(2).kill()
    stage.check()
    start_again(demo, session, 2, START_S)
    wait_until_finished(demo, session)
    with stage.gaps("death of the front"):
        demo.supervisor.kill(FRONT)
        stage.check()
        wait_for("our leadership", lambda: taken_over(demo), START_S)

    exact.begin(7)
    with stage.gaps("death of front and job: the brokers take the groups"):
        demo.kill_ours()
        wait_for("the brokers' leadership", lambda: coordinators(demo) == {1, 2, 3})
    exact.commit()
    # Brokers before 2.5 answer with what counted before while the marker is under way.
    wait_for("the offset of a transaction begun with us", lambda: exact.committed() == 7)
    with stage.gaps("take-over"):
        demo.start_ours()
        wait_for("our leadership", lambda: taken_over(demo), START_S)
    wait_until_finished(demo, session)
    stage.check()
    exact.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "demo",
    [
        brokers_of("3.9.2", "2.1", cluster=TAKING_GROUPS_OVER),
        brokers_of("3.9.2", "2.4", cluster=TAKING_GROUPS_OVER),
    ],
    indirect=True,
)
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((raise_brokers, raise_ours), id="brokers first"),
        pytest.param((raise_ours, raise_brokers), id="we first"),
    ],
)
def test_groups_live_through_a_protocol_that_is_raised(
    demo: DemoCluster, session: ZkSession, stage: Stage, steps: Sequence[Step]
) -> None:
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.join_others()
    stage.check()
    for step in steps:
        step(demo, session)
        wait_for("our leadership", lambda: taken_over(demo), START_S)
        stage.check()


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(
    "demo", [brokers_of("2.4.1", "2.4", cluster=TAKING_GROUPS_OVER)], indirect=True
)
def test_no_commit_is_lost_over_many_deaths(demo: DemoCluster, stage: Stage) -> None:
    die_often(demo, stage, DEATHS, looked_at=0.6)
