"""How many partitions somebody may create and delete: the same here as at a broker's controller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.embedded.ports import LOOPBACK
from streaming.wire.apis import ApiKey
from tests.e2e.real_cluster import Kind, RealCluster, running
from tests.e2e.securing import resign
from tests.fixtures.gateway_client import ask_once
from tests.fixtures.kafka_tools import NEW, KafkaTools

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:unclosed <s:ResourceWarning"),
]

PER_S = 0.1
"""So few that a slow machine lets nothing more through."""
NONE, EXCEEDED = ProtocolError.NONE, ProtocolError.THROTTLING_QUOTA_EXCEEDED
CREATE, GROW, DELETE = ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_TOPICS
TOOL = ("kafka-topics", "--create", "--replication-factor", "1", "--partitions", "1", "--topic")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    with running(tmp_path, {1: Kind()}, spark=False) as cluster:
        yield cluster


def asked(port: int, key: ApiKey, version: int, **body: Any) -> tuple[ProtocolError, float]:
    """Ask for one topic; return what becomes of it, and for how many seconds to be quiet."""
    answer = ask_once(port, key, version, {"timeout_ms": 20_000} | body)
    (result,) = answer[{CREATE: "topics", GROW: "results", DELETE: "responses"}[key]]
    return ProtocolError(result["error_code"]), answer["throttle_time_ms"] / 1_000


def new(name: str, partitions: int) -> list[dict[str, Any]]:
    what = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    return [what | {"assignments": [], "configs": []}]


def in_turn(port: int, name: str) -> list[tuple[ProtocolError, float]]:
    """Create, grow and delete a topic and ask for others, as clients of versions that know of
    refusals, and of those before.
    """
    grown = [{"name": name, "count": 9, "assignments": None}]
    other = f"{name}-other"
    return [
        asked(port, CREATE, 7, topics=new(name, 8)),
        asked(port, CREATE, 7, topics=new(other, 1)),
        asked(port, CREATE, 7, topics=new(other, 1), validate_only=True),
        asked(port, CREATE, 7, topics=new(name, 1)),
        asked(port, GROW, 3, topics=grown),
        asked(port, DELETE, 6, topics=[{"name": name, "topic_id": None}]),
        asked(port, CREATE, 5, topics=new(other, 1)),
        asked(port, GROW, 2, topics=grown),
        asked(port, DELETE, 4, topic_names=[name]),
    ]


def test_who_creates_too_much_hears_what_a_broker_says(
    cluster: RealCluster, tmp_path: Path
) -> None:
    broker = cluster.brokers[1].client_port
    here, there = (
        KafkaTools(NEW, ["--bootstrap-server", f"{LOOPBACK}:{port}"], tmp_path)
        for port in (cluster.port, broker)
    )
    user = ("--entity-type", "users", "--entity-name", "ANONYMOUS")
    here("kafka-configs", "--alter", *user, "--add-config", f"controller_mutation_rate={PER_S}")
    ours = in_turn(cluster.port, "ours")
    assert "quota has been exceeded" in here(*TOOL, "by-tool", fails=True)

    assert resign(cluster) == 1
    theirs = in_turn(broker, "theirs")
    assert "quota has been exceeded" in there(*TOOL, "by-tool", fails=True)

    exists = ProtocolError.TOPIC_ALREADY_EXISTS
    assert [error for error, _ in theirs] == [
        *(NONE, EXCEEDED, NONE, exists, EXCEEDED, EXCEEDED),
        *(NONE, NONE, NONE),
    ]
    assert [error for error, _ in ours] == [error for error, _ in theirs]
    assert [pause for _, pause in ours] == pytest.approx([pause for _, pause in theirs], abs=25.0)
    for _, pause in ours:
        assert pause == 0 or pause > 30
