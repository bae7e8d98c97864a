"""Three real brokers with an authorizer of their own: the gateway asks a class of the same kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.granting import (
    BOB,
    BUILD,
    EVE,
    SUPER_USERS,
    TEMPT,
    Grant,
    permits_as_brokers_do,
    refuses_as_brokers_do,
)
from tests.e2e.named_cluster import ALICE, WONDER, Named, named_cluster
from tests.e2e.securing import read_in_turns
from tests.fixtures.certificates import Authority
from tests.fixtures.jars_of_tests import AUTHORIZER, jars_of_tests

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <s:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:subprocess:ResourceWarning"),
]


@pytest.fixture
def named(tmp_path: Path) -> Iterator[Named]:
    authority = Authority(tmp_path / "authority")
    jars = jars_of_tests(tmp_path / "jars")
    users = {ALICE: WONDER, BOB: BUILD, EVE: TEMPT}
    rights = {
        "authorizer.class.name": AUTHORIZER,
        "authorizer.class.path": f"{jars}/*",
        "super.users": SUPER_USERS,
    }
    with named_cluster(tmp_path / "named", authority, users, rights, jars=jars) as cluster:
        yield Named(cluster, authority)


def test_who_asks_hears_what_a_broker_says(named: Named, tmp_path: Path) -> None:
    refuses_as_brokers_do(named)
    grant = Grant(named, tmp_path)
    permits_as_brokers_do(named, grant)
    topic = "read"
    grant.topic(topic)
    alice = ("--allow-principal", f"User:{ALICE}", "--operation", "Read")
    grant(*alice, "--operation", "Write", "--topic", topic)
    grant(*alice, "--group", "of-read")
    read_in_turns(named.cluster, topic, named.python())
    assert named.cluster.status()["gateway"]["operations_denied"] > 0
