"""A shadow beside Kafka's own controller, through everything that brokers and admins do.

It folds in its own process; that the query gives the same is in tests/spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import TopicPartition

from streaming.zk.znodes.admin import reassignment_bytes
from tests.e2e.shadowed_cluster import ASK_MS, ShadowedCluster, shadowed
from tests.e2e.waiting import wait_for

PARTITIONS = 6
PLAN = "/admin/reassign_partitions"

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ShadowedCluster]:
    with shadowed(tmp_path) as cluster:
        yield cluster


def restarts(stage: ShadowedCluster) -> None:
    """A broker is killed and comes back, another leaves in order and comes back."""
    dead = stage.another()
    stage.cluster.brokers[dead].kill()
    wait_for("the death", lambda: stage.without(dead, PARTITIONS))
    stage.cluster.brokers[dead].start()
    wait_for("full ISRs", lambda: stage.full("t", PARTITIONS))
    leaving = stage.another()
    assert stage.cluster.brokers[leaving].terminate(120)
    wait_for("the way out", lambda: stage.without(leaving, PARTITIONS))
    stage.cluster.brokers[leaving].start()
    wait_for("full ISRs", lambda: stage.full("t", PARTITIONS))


def requests(stage: ShadowedCluster) -> None:
    """What only the live controller hears, and what it reads from ZooKeeper."""
    admin = stage.admin()
    admin.elect_leaders(0, {"t": list(range(PARTITIONS))}, timeout_ms=ASK_MS)
    admin.create_partitions({"t": PARTITIONS + 1}, timeout_ms=ASK_MS)
    admin.create_topics({"m": {"assignments": {0: [1, 2], 1: [2, 3]}}}, timeout_ms=ASK_MS)
    wait_for("the topic", lambda: stage.full("m", 2, members=2))
    admin.alter_partition_reassignments({TopicPartition("m", 0): [3, 1]}, timeout_ms=ASK_MS)
    wait_for("the move", lambda: stage.on("m", 0, [3, 1]))
    stage.session.create(PLAN, reassignment_bytes({("m", 1): [1, 3]}))
    wait_for("the move by znode", lambda: stage.on("m", 1, [1, 3]))
    wait_for("the moves' match", lambda: stage.agreed_to_move("m", 1, [1, 3]))
    admin.delete_topics(["m"], timeout_ms=ASK_MS)
    wait_for("the deletion", lambda: stage.gone("m"))
    wait_for("its match, before another controller", lambda: stage.agreed("delete_topic"))
    admin.close()


def deaths(stage: ShadowedCluster) -> None:
    """The controller dies; then a topic is deleted of which a replica is away."""
    dead = stage.controller()
    assert dead is not None
    stage.cluster.brokers[dead].kill()
    wait_for("a new controller", lambda: stage.controller() not in (None, dead))
    wait_for("its decisions", lambda: stage.without(dead, PARTITIONS + 1))
    stage.cluster.brokers[dead].start()
    wait_for("full ISRs", lambda: stage.full("t", PARTITIONS + 1))
    away = stage.another()
    stage.cluster.brokers[away].kill()
    wait_for("the death", lambda: stage.without(away, PARTITIONS + 1))
    admin = stage.admin()
    admin.delete_topics(["t"], timeout_ms=ASK_MS)
    admin.close()
    stage.cluster.brokers[away].start()
    wait_for("the deletion", lambda: stage.gone("t"))


def test_nothing_differs_that_is_not_explained(stage: ShadowedCluster) -> None:
    admin = stage.admin()
    wanted = {"num_partitions": PARTITIONS, "replication_factor": 3}
    admin.create_topics({"before": wanted}, timeout_ms=ASK_MS)
    wait_for("a topic", lambda: stage.full("before", PARTITIONS))
    stage.start_shadow()
    marks = stage.log_sizes()
    admin.create_topics({"t": wanted}, timeout_ms=ASK_MS)
    admin.close()
    wait_for("the topic", lambda: stage.full("t", PARTITIONS))

    restarts(stage)
    requests(stage)
    deaths(stage)

    wait_for("the last match", lambda: stage.agreed("delete_topic") == {"m", "t"})
    wait_for("full ISRs", lambda: stage.full("before", PARTITIONS))
    last = stage.isrs("before", PARTITIONS)
    code = stage.end_shadow()
    *verdicts, summary = stage.said()
    diverged = [one for one in verdicts if one["status"] in {"differed", "missed", "extra"}]
    assert (diverged, summary["summary"]["divergences"]) == ([], 0), "DIFFERENT"
    assert (code, summary["summary"]["unsettled"]) == (0, 0)
    assert {one["why"] for one in verdicts if one["status"] == "explained"} <= {
        "several changes to a partition in one event"
    }
    # A shutdown that is over within a look counts as a death; both elect the same leader.
    for kind in (
        "new_partition_elected",
        "offline_partition_elected",
        "preferred_replica_elected",
        "isr_altered_by_leader",
        "rewrite_assignment",
        "complete_reassignment",
    ):
        assert stage.agreed(kind), kind
    assert summary["summary"]["partitions"] == len(last)
    elected, ours = stage.elections_logged(marks), stage.elections_tapped()
    # Moves are left out: a look may come when one is over that began at the look before.
    assert ours["t"] == elected["t"]
