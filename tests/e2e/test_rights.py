"""Three real brokers with Kafka's own authorizer: who asks the gateway gets what a broker gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer
from kafka.errors import GroupAuthorizationFailedError

from streaming.wire.apis import ApiKey
from tests.e2e.granting import (
    BOB,
    BUILD,
    CONTROLLERS,
    EVE,
    SUPER_USERS,
    TEMPT,
    Grant,
    at_both_ends,
    permits_as_brokers_do,
    refuses_as_brokers_do,
)
from tests.e2e.named_cluster import ALICE, WONDER, Named, shared_named
from tests.e2e.named_users import User
from tests.e2e.securing import brokers, read_in_turns, resign
from tests.e2e.shared import Shared
from tests.e2e.verifying import told_otherwise_under
from tests.e2e.waiting import wait_for
from tests.unit.gateway.bodies import BODIES

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <s:ResourceWarning"),
]

RIGHTS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": SUPER_USERS,
}
_LENT = [{"name": "lent", "topic_id": None}]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared[Named]]:
    users = {ALICE: WONDER, BOB: BUILD, EVE: TEMPT}
    with shared_named(tmp_path_factory, users, RIGHTS) as clusters:
        yield clusters


@pytest.fixture
def named(clusters: Shared[Named]) -> Named:
    return clusters.get()


@pytest.fixture
def grant(named: Named, tmp_path: Path) -> Grant:
    return Grant(named, tmp_path)


def test_who_may_nothing_hears_what_a_broker_says(named: Named) -> None:
    refuses_as_brokers_do(named)


def test_who_may_something_hears_what_a_broker_says(named: Named, grant: Grant) -> None:
    permits_as_brokers_do(named, grant)


def test_brokers_are_compared_with_zookeeper_as_this_node(named: Named, grant: Grant) -> None:
    grant.topic("compared")
    options = [one.removeprefix("--set=") for one in named.cluster.supervisor.config]
    wait_for("agreement", lambda: not told_otherwise_under(options))


def test_a_group_is_coordinated_for_who_may_read_it(named: Named, grant: Grant) -> None:
    topic, group = "read", "of-read"
    grant.topic(topic)
    alice = ("--allow-principal", f"User:{ALICE}")
    grant(*alice, "--operation", "Read", "--operation", "Write", "--topic", topic)
    servers = brokers(named.cluster)
    with pytest.raises(GroupAuthorizationFailedError):
        consumer = KafkaConsumer(topic, bootstrap_servers=servers, group_id=group, **named.python())
        try:
            consumer.poll(60_000)
        finally:
            consumer.close()
    grant(*alice, "--operation", "Read", "--group", "of-", "--resource-pattern-type", "prefixed")
    user = User(named, ALICE, WONDER)
    found = (ApiKey.FIND_COORDINATOR, 0, {"key": group})
    wait_for("the right", lambda: user.asks_us([found])[0]["error_code"] == 0)
    wait_for("it at the broker", lambda: user.asks_broker([found])[0]["error_code"] == 0)
    read_in_turns(named.cluster, topic, named.python())


def test_rights_end_when_they_are_taken(named: Named, grant: Grant) -> None:
    grant.topic("lent")
    lent = ("--allow-principal", f"User:{ALICE}", "--operation", "Describe", "--topic", "lent")
    grant(*lent)
    wait_for("the right", lambda: "lent" in grant.topics_of(ALICE, WONDER))
    grant(*lent, take=True)
    wait_for("its end", lambda: "lent" not in grant.topics_of(ALICE, WONDER))

    def denied() -> int:
        return int(named.cluster.status()["gateway"].get("operations_denied", 0))

    before = denied()
    User(named, ALICE, WONDER).asks_us([(ApiKey.METADATA, 12, {"topics": _LENT})])
    assert denied() == before + 1


def test_who_may_nothing_hears_what_a_controller_says(
    clusters: Shared[Named], named: Named
) -> None:
    requests, eve = at_both_ends({key: BODIES[key] for key in CONTROLLERS}), User(named, EVE, TEMPT)
    ours = eve.asks_us(requests)
    clusters.spoil()
    controller = resign(named.cluster)
    theirs = eve.asks_broker(requests, controller)
    for request, one, other in zip(requests, ours, theirs, strict=True):
        assert one == other, request
