"""The brokers' policy for new topics counts here as it does with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streaming.embedded.ports import LOOPBACK
from streaming.wire.apis import ApiKey
from tests.e2e.first_clients import ask
from tests.e2e.real_cluster import Kind, running
from tests.e2e.securing import resign
from tests.fixtures.jars_of_tests import POLICY, jars_of_tests

pytestmark = pytest.mark.timeout(600)

_MS = 30_000
_VERSION = 4


def _topic(name: str, partitions: int = -1, *replicas: list[int], **configs: str) -> dict[str, Any]:
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": -1 if replicas else 1,
        "assignments": [
            {"partition_index": number, "broker_ids": brokers}
            for number, brokers in enumerate(replicas)
        ],
        "configs": [
            {"name": key.replace("_", "."), "value": value} for key, value in configs.items()
        ],
    }


_ASKED = [
    _topic("enough", 6),
    _topic("few", 3),
    _topic("default"),
    _topic("configured", 6, cleanup_policy="compact"),
    _topic("many", 12),
    _topic("many-for-a-moment", 12, retention_ms="4000"),
    _topic("placed", -1, [1, 2], [2, 1]),
    _topic("placed-alone", -1, [1, 2], [2]),
    _topic("placed-twice", -1, [1, 1]),
    _topic("too few and no name!", 3),
]


def test_a_policy_refuses_here_what_it_refuses_at_brokers(tmp_path: Path) -> None:
    jars = jars_of_tests(tmp_path / "jars")
    shared = {"create.topic.policy.class.name": POLICY}
    kinds = {id_: Kind(config=shared, jars=jars) for id_ in (1, 2)}
    settings = {**shared, "create.topic.policy.class.path": f"{jars}/*"}
    given = [f"{key}={value}" for key, value in settings.items()]
    with running(tmp_path / "cluster", kinds, given, spark=False) as cluster:

        def answered(port: int, *, dry: bool) -> dict[str, tuple[int, str | None]]:
            body = {"topics": _ASKED, "timeout_ms": _MS, "validate_only": dry}
            answer = ask((LOOPBACK, port), ApiKey.CREATE_TOPICS, _VERSION, body)
            return {
                one["name"]: (one["error_code"], one["error_message"]) for one in answer["topics"]
            }

        ours = answered(cluster.port, dry=True)
        assert ours["few"] == (44, "Topics should have at least 5 partitions, received 3")
        assert ours["configured"][0] == -1  # it fails: what it requires is not so
        allowed = {name for name, (code, _) in ours.items() if code == 0}
        assert allowed == {"enough", "many-for-a-moment", "placed"}

        assert answered(cluster.port, dry=False) == ours
        assert allowed <= set(cluster.session.children("/brokers/topics"))
        again = answered(cluster.port, dry=False)
        assert {name for name, (code, _) in again.items() if code == 36} == allowed  # is there

        controller = resign(cluster)
        theirs = answered(cluster.brokers[controller].client_port, dry=True)
        assert {name: code for name, (code, _) in theirs.items()} == {
            name: code for name, (code, _) in again.items()
        }
        refused = {name for name, (code, _) in ours.items() if code in (-1, 44)}
        assert {name: theirs[name] for name in refused} == {name: ours[name] for name in refused}
