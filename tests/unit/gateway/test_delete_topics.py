"""DeleteTopics at every version, by name and by id."""

from __future__ import annotations

import asyncio
import uuid
from functools import partial
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from state.topic_ids import topic_id_from_text, topic_id_to_text
from streaming.gateway.ports import DecisionTimedOut, NotController
from streaming.image.cluster_image import ClusterImage
from streaming.wire.apis import ApiKey
from tests.fixtures.waiting import wait_on_loop
from tests.unit.gateway.support import Rig, with_gateway

T_ID = "xVg7K6qyTvmxpuD7RnqU_w"
T_UUID = uuid.UUID(bytes=topic_id_from_text(T_ID))
STRANGER = uuid.UUID(int=77)


async def delete(
    rig: Rig,
    version: int,
    *asked: tuple[str | None, uuid.UUID | None],
    timeout_ms: int = 30_000,
) -> list[Any]:
    """Ask for topics by (name, id); returns (name, id, error) of each."""
    named = [{"name": name, "topic_id": topic_id} for name, topic_id in asked]
    body = {"topics": named} if version >= 6 else {"topic_names": [name for name, _ in asked]}
    answer = await rig.ask(ApiKey.DELETE_TOPICS, version, body | {"timeout_ms": timeout_ms})
    return [
        (one["name"], one.get("topic_id") or None, one["error_code"]) for one in answer["responses"]
    ]


@pytest.mark.parametrize("version", range(1, 7))
def test_topics_are_deleted_by_name(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]], T_ID)
        shown = T_UUID if version >= 6 else None
        found = await delete(rig, version, ("t", None), ("none", None))
        assert found == [("t", shown, 0), ("none", None, 3)]
        [asked, _] = rig.cluster.payloads("delete_topic_requested")
        assert (asked["topic"], asked["topic_id"]) == ("t", None)

    with_gateway(scenario)


def test_topics_are_deleted_by_id() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]], T_ID)
        found = await delete(rig, 6, (None, T_UUID), (None, STRANGER), (None, None))
        assert found == [("t", T_UUID, 0), (None, STRANGER, 100), (None, None, 100)]
        asked = rig.cluster.payloads("delete_topic_requested")
        unknown = topic_id_to_text(STRANGER.bytes)
        assert [(one["topic"], one["topic_id"]) for one in asked] == [("t", T_ID), ("", unknown)]

    with_gateway(scenario)


def test_a_topic_that_the_image_gets_before_the_answer_is_deleted_by_its_id() -> None:
    """A job that starts again tells an image without its last batch, which runs again first."""

    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]], T_ID)
        whole, rig.cluster.known = rig.cluster.known, ClusterImage()
        rig.cluster.gate = asyncio.Event()
        answering = asyncio.create_task(delete(rig, 6, (None, T_UUID)))
        asked = partial(rig.cluster.payloads, "delete_topic_requested")
        await wait_on_loop("the request to be asked", asked)
        rig.cluster.known = whole
        rig.cluster.gate.set()
        assert await answering == [("t", T_UUID, 0)]

    with_gateway(scenario)


def test_an_unknown_id_is_not_decided_by_another_controller() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.happen("controller_resigned", "", {"reason": "x"})
        assert await delete(rig, 6, (None, STRANGER)) == [(None, STRANGER, 41)]

    with_gateway(scenario)


def test_a_request_with_a_name_and_an_id_is_refused_as_a_whole() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]], T_ID)
        found = await delete(rig, 6, ("t", None), ("t", T_UUID))
        assert [error for _, _, error in found] == [
            ProtocolError.INVALID_REQUEST,
            ProtocolError.INVALID_REQUEST,
        ]
        assert rig.cluster.payloads("delete_topic_requested") == []

    with_gateway(scenario)


def test_a_topic_that_is_named_twice_is_asked_for_once() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]], T_ID)
        assert [error for *_, error in await delete(rig, 5, ("t", None), ("t", None))] == [0, 0]
        assert len(rig.cluster.payloads("delete_topic_requested")) == 1

    with_gateway(scenario)


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (2, ProtocolError.INVALID_REQUEST),
        (3, ProtocolError.TOPIC_DELETION_DISABLED),
        (6, ProtocolError.TOPIC_DELETION_DISABLED),
    ],
)
def test_deletion_may_be_switched_off(version: int, error: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]], T_ID)
        switch = {"config": {"delete.topic.enable": False}}
        rig.cluster.happen("cluster_config_changed", "", switch)
        assert [one[2] for one in await delete(rig, version, ("t", None))] == [error]

    with_gateway(scenario)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_a_time_for_brokers_only_what_is_done_is_timed_out(timeout_ms: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]], T_ID)
        found = await delete(rig, 6, ("t", None), ("none", None), timeout_ms=timeout_ms)
        assert [error for *_, error in found] == [
            ProtocolError.REQUEST_TIMED_OUT,
            ProtocolError.UNKNOWN_TOPIC_OR_PARTITION,
        ]

    with_gateway(scenario)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (NotController("gone"), ProtocolError.NOT_CONTROLLER),
        (DecisionTimedOut("late"), ProtocolError.REQUEST_TIMED_OUT),
    ],
)
def test_what_is_not_decided_is_an_error(failure: Exception, error: int) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.create("t", [[1, 2]])
        rig.cluster.fail = failure
        assert [one[2] for one in await delete(rig, 6, ("t", None))] == [error]

    with_gateway(scenario)


def test_another_controller_is_to_be_asked() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.controller = False
        found = await delete(rig, 6, ("t", None), (None, T_UUID))
        assert [error for *_, error in found] == [
            ProtocolError.NOT_CONTROLLER,
            ProtocolError.NOT_CONTROLLER,
        ]

    with_gateway(scenario)
