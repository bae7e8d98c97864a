"""A ZooKeeper of three servers: while one is away, whichever it is, control stays where it is."""

from __future__ import annotations

import pytest

from streaming.demo.cluster import DemoCluster
from streaming.demo.steps import STORY
from streaming.zk.client import ZkSession
from tests.e2e.random_checks import wait_until_finished
from tests.e2e.telling import check_nothing_lost, tell
from tests.e2e.waiting import wait_for
from tests.fixtures.ensemble import SERVERS, ZooKeeperEnsemble

CREATED, CRASHED, SHUT_DOWN = STORY[:2], STORY[2:4], STORY[4:6]

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("plain_job"),
]


@pytest.mark.parametrize("demo", [{"zookeeper": ZooKeeperEnsemble}], indirect=True)
def test_control_stays_while_a_server_is_away(demo: DemoCluster, session: ZkSession) -> None:
    ensemble = demo.embedded.zookeeper
    assert isinstance(ensemble, ZooKeeperEnsemble)
    tell(demo, CREATED)
    before = demo.look()
    for number in range(SERVERS):
        ensemble.kill()
        demo.create_topic(f"asked-without-{number}")
        tell(demo, CRASHED)
        ensemble.start()
        wait_until_finished(demo, session)
    hanging = wait_for("a leader", ensemble.leader)
    hanging.pause()
    tell(demo, SHUT_DOWN)
    hanging.resume()
    wait_until_finished(demo, session)
    now = demo.look()
    assert now.controller_czxid == before.controller_czxid, "the role was lost in between"
    check_nothing_lost(demo)
