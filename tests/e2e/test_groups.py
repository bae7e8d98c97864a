"""Consumer groups go over to us, live through our deaths, go back to the brokers and come again:
no commit that was acknowledged is ever lost.

Everything is real in one of the tests, and in the others everything but Spark, so that a killed job
is back in a moment.
"""

from __future__ import annotations

import re
import signal
import time

import pytest

from state.topic_overrides import MIN_INSYNC
from streaming.demo.cluster import DemoCluster
from streaming.internal_topics import GROUP_TOPIC
from streaming.offsets.leader import Refusal
from streaming.supervisor.processes import FRONT, JOB
from streaming.zk.client import ZkSession
from tests.e2e.group_clients import TOPIC
from tests.e2e.group_deaths import START_S, die_often
from tests.e2e.group_stage import (
    PARTITIONS,
    TAKING_GROUPS_OVER,
    Stage,
    committed,
    configure,
    coordinators,
    kill_job_for,
    refusals,
    taken_over,
)
from tests.e2e.group_topics import Topics
from tests.e2e.group_transactions import Transactional, fences_producers
from tests.e2e.telling import signal_job
from tests.e2e.waiting import wait_for

DEATHS = 50
QUERY_DEATHS = 12
"""Of a job that takes Spark's time to be back."""

LOOKED_AT = 0.6
"""The share of its deaths after which somebody waits until clients go on."""

LEASE_MS = 10_000
AWAY_S = 600.0
"""Until it is let back: a job that is not meant to return by itself."""

REPLACED = "replaced"
"""A topic that is deleted and made again, and a group that commits of it."""

LOOK_S = 2.0

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.parametrize(
        "demo",
        [TAKING_GROUPS_OVER],
        indirect=True,
    ),
]


def test_groups_live_through_deaths_of_a_query(demo: DemoCluster, stage: Stage) -> None:
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.join_others()
    stage.check()

    with stage.gaps("death of a query"):
        demo.supervisor.kill(JOB)
    demo.kill_ours()
    wait_for("the brokers' leadership", lambda: coordinators(demo) == {1, 2, 3})
    stage.check()


@pytest.mark.usefixtures("plain_job")
def test_groups_live_through_every_death(
    demo: DemoCluster, session: ZkSession, stage: Stage
) -> None:
    stage.check()
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.join_others()
    stage.check()
    look_at_groups(stage)
    exact = Transactional(stage.brokers, "exact")
    commit_and_abort(exact)
    fences_producers(demo.broker(1).client_port, int(demo.gateway.split(":")[1]))

    exact.begin(6)
    with stage.gaps("death of a job without Spark"):
        demo.supervisor.kill(JOB)
    exact.commit()
    assert exact.committed() == 6, "LOST: a transaction that the job's death fell into"
    with stage.gaps("death of the front"):
        demo.supervisor.kill(FRONT)
        stage.check()
        wait_for("our leadership", lambda: taken_over(demo), START_S)

    commits_wait_for_enough_in_sync(demo, session, stage)

    topics = Topics(demo.embedded.bootstrap_servers, demo.folders)
    begins_without_offsets(topics)
    exact.begin(7)
    with stage.gaps("death of front and job: the brokers take the groups"):
        demo.kill_ours()
        wait_for("the brokers' leadership", lambda: coordinators(demo) == {1, 2, 3})
    wait_for("a broker's answer", lambda: topics.committed(REPLACED) == {(REPLACED, 0): 1})
    exact.commit()
    assert exact.committed() == 7, "LOST: begun with us, ended with the brokers"
    exact.begin(8)
    with stage.gaps("take-over"):
        demo.start_ours()
        wait_for("our leadership", lambda: taken_over(demo), START_S)
    exact.commit()
    assert exact.committed() == 8, "LOST: begun with the brokers, ended with us"
    exact.close()


@pytest.mark.usefixtures("plain_job")
def test_the_brokers_have_the_groups_while_only_the_job_is_away(
    demo: DemoCluster, stage: Stage
) -> None:
    """It dies and later hangs, each for longer than the lease of a front that lives."""
    front, job = demo.supervisor.roles[FRONT], demo.supervisor.roles[JOB]
    front.command.append(f"--set=controller.lease.ms={LEASE_MS}")
    demo.start_ours()
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.join_others()
    stage.check()

    kill_job_for(demo, AWAY_S)
    wait_for("the brokers' leadership", lambda: coordinators(demo) == {1, 2, 3})
    stage.check()
    job.start_after = 0.0
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.check()

    signal_job(demo, signal.SIGSTOP)
    wait_for("the brokers' leadership", lambda: coordinators(demo) == {1, 2, 3})
    stage.check()
    signal_job(demo, signal.SIGCONT)
    wait_for("our leadership", lambda: taken_over(demo), START_S)
    stage.check()
    assert (front.starts, job.starts) == (1, 2), "nobody else died"


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.usefixtures("plain_job")
def test_no_commit_is_lost_over_many_deaths(demo: DemoCluster, stage: Stage) -> None:
    die_often(demo, stage, DEATHS, looked_at=1.0)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_no_commit_is_lost_over_deaths_of_a_query(demo: DemoCluster, stage: Stage) -> None:
    """Also of one that has not come back from the last."""
    die_often(demo, stage, QUERY_DEATHS, LOOKED_AT)


def commits_wait_for_enough_in_sync(demo: DemoCluster, session: ZkSession, stage: Stage) -> None:
    """A broker dies, and with it a commit is where the topic's configuration wants it no more."""
    configure(session, GROUP_TOPIC, {MIN_INSYNC: "3"})
    follower = demo.broker(2)
    follower.kill()
    wait_for("refusals", lambda: refusals(demo) == {Refusal.TOO_FEW_IN_SYNC})
    time.sleep(LOOK_S)  # for answers that were on their way
    acked = [len(member.acked_s) for member in stage.members]
    time.sleep(LOOK_S)
    assert [len(member.acked_s) for member in stage.members] == acked
    configure(session, GROUP_TOPIC, {MIN_INSYNC: "2"})
    stage.check()
    follower.start()
    stage.check()


def look_at_groups(stage: Stage) -> None:
    """Kafka's own tool sees all groups, and may do with one that is empty what it likes."""

    def groups(*options: str) -> str:
        return stage.tools("kafka-consumer-groups", "--timeout", "60000", *options)

    def stable() -> bool:
        listed = groups("--list", "--state")
        names = {member.group for member in stage.members}
        return all(re.search(rf"^{one}\s+Stable", listed, re.MULTILINE) for one in names)

    def its_member() -> re.Match[str] | None:
        described = groups("--describe", "--group", "static", "--members")
        return re.search(r"one-\S+\s+one\s+/127.0.0.1\s+rdkafka\s+3", described)

    wait_for("all groups, stable", stable)
    wait_for("the static member with all partitions", its_member)
    reset = ["--group", "by-hand", "--topic", TOPIC, "--reset-offsets", "--execute"]
    groups(*reset, "--to-offset", "1")
    assert committed(stage.brokers, "by-hand") == dict.fromkeys(range(PARTITIONS), 1)
    groups("--delete", "--group", "by-hand")
    assert "by-hand" not in groups("--list")


def begins_without_offsets(topics: Topics) -> None:
    """What was committed of a topic does not count for another one of its name."""
    topics.create(REPLACED, 2)
    old = {(REPLACED, 0): 5, (REPLACED, 1): 6}
    wait_for("a commit", lambda: topics.commit(REPLACED, old))
    assert topics.committed(REPLACED) == old
    topics.replace(REPLACED, 2)
    wait_for("the end of the old offsets", lambda: topics.committed(REPLACED) == {})
    wait_for("a commit", lambda: topics.commit(REPLACED, {(REPLACED, 0): 1}))


def commit_and_abort(exact: Transactional) -> None:
    """Offsets that a transaction commits count when it is committed, and only then."""
    for offset, end in ((5, exact.commit), (9, exact.abort)):
        exact.begin(offset)
        end()
        assert exact.committed() == 5
