"""Administrators ask about topics that are being read again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from uuid import UUID

import pytest

from state.protocol_errors import ProtocolError
from state.topic_ids import topic_id_from_text
from streaming.gateway import admin
from streaming.wire.apis import ApiKey
from tests.fixtures.states import stored
from tests.fixtures.waiting import wait_on_loop
from tests.unit.gateway.support import Rig, with_gateway

AGAIN = ProtocolError.NOT_CONTROLLER
TIME = {"timeout_ms": 30_000}

Ask = Callable[[Rig], Awaitable[list[int]]]


async def create(rig: Rig) -> list[int]:
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    body = {"topics": [topic | {"assignments": [], "configs": []}], "validate_only": True}
    answer = await rig.ask(ApiKey.CREATE_TOPICS, 7, body | TIME)
    return [one["error_code"] for one in answer["topics"]]


async def grow(rig: Rig) -> list[int]:
    topics = [{"name": "t", "count": 2, "assignments": None}]
    body = {"topics": topics, "validate_only": False, **TIME}
    answer = await rig.ask(ApiKey.CREATE_PARTITIONS, 3, body)
    return [one["error_code"] for one in answer["results"]]


async def delete(rig: Rig, names: Iterable[str] = ("t",)) -> list[int]:
    topics = [{"name": name, "topic_id": None} for name in names]
    answer = await rig.ask(ApiKey.DELETE_TOPICS, 6, {"topics": topics, **TIME})
    return [one["error_code"] for one in answer["responses"]]


async def delete_by_id(rig: Rig) -> list[int]:
    topic_id = UUID(bytes=topic_id_from_text(rig.cluster.known.topic_ids["t"]))
    topics = [{"name": None, "topic_id": topic_id}]
    answer = await rig.ask(ApiKey.DELETE_TOPICS, 6, {"topics": topics, **TIME})
    return [one["error_code"] for one in answer["responses"]]


async def elect(rig: Rig) -> list[int]:
    asked = [{"topic": "t", "partitions": [0]}]
    body = {"election_type": 0, "topic_partitions": asked, **TIME}
    answer = await rig.ask(ApiKey.ELECT_LEADERS, 2, body)
    [topic] = answer["replica_election_results"]
    return [one["error_code"] for one in topic["partition_result"]]


async def alter(rig: Rig) -> list[int]:
    """Reassign: the error of the whole answer, or else those of the partitions."""
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "replicas": [2, 1]}]}]
    body = {"topics": topics, **TIME}
    answer = await rig.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, body)
    partitions = [one for topic in answer["responses"] for one in topic["partitions"]]
    return [one["error_code"] for one in partitions] or [answer["error_code"]]


ASKS: dict[Ask, ProtocolError] = {
    create: ProtocolError.TOPIC_ALREADY_EXISTS,
    grow: ProtocolError.NONE,
    delete: ProtocolError.NONE,
    delete_by_id: ProtocolError.NONE,
    elect: ProtocolError.ELECTION_NOT_NEEDED,
    alter: ProtocolError.NONE,
}


def taken_back(rig: Rig) -> str:
    """Topic t is being read again; returns its id."""
    topic_id = rig.cluster.create("t", [[1, 2]])
    rig.cluster.happen("topic_removed", "t", {"topic": "t", "observed_again": True})
    return topic_id


def found(rig: Rig, topic_id: str) -> None:
    """Topic t has been read again."""
    state = stored(1, [1, 2], leader_epoch=0, controller_epoch=7, zk_version=0)
    body = {"topic": "t", "topic_id": topic_id, "partitions": [0], "replicas": [[1, 2]]}
    rig.cluster.happen("topic_observed", "t", body | {"states": [state], "observed_again": True})


def requests(rig: Rig) -> list[str]:
    return [one.key for one in rig.cluster.events if one.kind.endswith("_requested")][1:]


@pytest.mark.parametrize("ask", ASKS)
def test_it_is_asked_about_again_until_it_is_known(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "_PAUSE_S", 0.01)
    monkeypatch.setattr(admin, "_TRIES_MORE", 10_000)

    async def scenario(rig: Rig) -> None:
        topic_id = taken_back(rig)
        answer = asyncio.ensure_future(ask(rig))
        await wait_on_loop("a second try", lambda: len(requests(rig)) > 1)
        found(rig, topic_id)
        assert await answer == [ASKS[ask]]

    with_gateway(scenario)


@pytest.mark.parametrize("ask", ASKS)
def test_the_client_is_to_ask_again_when_that_takes_long(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "_PAUSE_S", 0.0)

    async def scenario(rig: Rig) -> None:
        taken_back(rig)
        assert await ask(rig) == [AGAIN]
        assert len(requests(rig)) == 11

    with_gateway(scenario)


def test_what_is_done_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java's client would hear that a topic it deleted does not exist."""
    monkeypatch.setattr(admin, "_PAUSE_S", 0.01)
    monkeypatch.setattr(admin, "_TRIES_MORE", 10_000)

    async def scenario(rig: Rig) -> None:
        rig.cluster.create("u", [[1]])
        topic_id = taken_back(rig)
        answer = asyncio.ensure_future(delete(rig, ["t", "u"]))
        await wait_on_loop("a second try", lambda: requests(rig).count("t") > 2)
        found(rig, topic_id)
        assert await answer == [ProtocolError.NONE, ProtocolError.NONE]
        assert requests(rig).count("u") == 1

    with_gateway(scenario)


def test_who_is_no_controller_any_more_does_not_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "_PAUSE_S", 0.01)
    monkeypatch.setattr(admin, "_TRIES_MORE", 10_000)

    async def scenario(rig: Rig) -> None:
        taken_back(rig)
        answer = asyncio.ensure_future(grow(rig))
        await wait_on_loop("a second try", lambda: len(requests(rig)) > 1)
        rig.cluster.controller = False
        assert await answer == [AGAIN]

    with_gateway(scenario)
