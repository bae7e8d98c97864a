"""Three real brokers with an authorizer, a principal builder and a callback handler for PLAIN of
their own: the gateway asks the same classes, and Java logs this node in.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer
from kafka.errors import KafkaError

from tests.e2e.granting import (
    BOB,
    BUILD,
    EVE,
    TEMPT,
    Grant,
    permits_as_brokers_do,
    refuses_as_brokers_do,
)
from tests.e2e.named_cluster import ALICE, CLUSTER, WONDER, Named, named_cluster
from tests.e2e.securing import SECURED, gateway, read_in_turns
from tests.fixtures.certificates import Authority
from tests.fixtures.jars_of_tests import AUTHORIZER, BY_LOGIN, LOGINS, USERS, jars_of_tests

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:unclosed <s:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:subprocess:ResourceWarning"),
]

HANDLER = "plain.sasl.server.callback.handler.class"
KIND = "Group"
"""Of the principals that the builder makes of who logs in."""


@pytest.fixture
def named(tmp_path: Path) -> Iterator[Named]:
    authority = Authority(tmp_path / "authority")
    jars = jars_of_tests(tmp_path / "jars")
    users = {ALICE: WONDER, BOB: BUILD, EVE: TEMPT}
    rights = {
        "authorizer.class.name": AUTHORIZER,
        "authorizer.class.path": f"{jars}/*",
        "super.users": f"{KIND}:{CLUSTER};User:ANONYMOUS",
        "principal.builder.class": BY_LOGIN,
        "principal.builder.class.path": f"{jars}/*",
        HANDLER: LOGINS,
        "sasl.server.callback.handler.class.path": f"{jars}/*",
        "sasl.login.class.path": f"{jars}/*",
    }
    of_brokers = {f"listener.name.{SECURED.lower()}.{HANDLER}": LOGINS}
    named = tmp_path / "named"
    with named_cluster(
        named, authority, users, rights, of_brokers=of_brokers, jars=jars
    ) as cluster:
        yield Named(cluster, authority)


def test_who_asks_hears_what_a_broker_says(named: Named, tmp_path: Path) -> None:
    refuses_as_brokers_do(named)
    grant = Grant(named, tmp_path, KIND)
    permits_as_brokers_do(named, grant)
    topic = "read"
    grant.topic(topic)
    ((user, password), *_) = USERS.items()
    allowed = ("--allow-principal", f"{KIND}:{user}", "--operation", "Read")
    grant(*allowed, "--operation", "Write", "--topic", topic)
    grant(*allowed, "--group", "of-read")
    read_in_turns(named.cluster, topic, named.python(user=user, password=password))
    with pytest.raises(KafkaError):  # the handler does not know her
        KafkaConsumer(bootstrap_servers=gateway(named.cluster), **named.python())
    assert named.cluster.status()["gateway"]["operations_denied"] > 0
