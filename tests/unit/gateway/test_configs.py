"""Config requests go where their resources belong; topics that brokers create are asked for."""

from __future__ import annotations

from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.wire.apis import APIS, ApiKey
from tests.unit.gateway.answering_broker import RANGES, AnsweringBroker, answering, brokers
from tests.unit.gateway.support import Rig, with_gateway

TOPIC, BROKER, LOGGER = 2, 4, 8
ALTERING = (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
CONFIG_APIS = (ApiKey.DESCRIBE_CONFIGS, *ALTERING)
INVALID_REQUEST = 42


def field_of(api_key: int) -> str:
    return "results" if api_key == ApiKey.DESCRIBE_CONFIGS else "responses"


def answering_broker(broker_id: int, api_key: int) -> AnsweringBroker:
    """A broker that answers for every resource and puts its id into the message."""

    def results(body: dict[str, Any]) -> list[dict[str, Any]]:
        extra: dict[str, Any] = {"configs": []} if api_key == ApiKey.DESCRIBE_CONFIGS else {}
        return [
            {
                "error_code": 0,
                "error_message": f"by {broker_id}",
                "resource_type": one["resource_type"],
                "resource_name": one["resource_name"],
                **extra,
            }
            for one in body["resources"]
        ]

    answer = answering(api_key, **{field_of(api_key): results})
    return AnsweringBroker(broker_id, answer=answer)


def resource(
    api_key: int, kind: int, name: str, configs: list[Any] | None = None
) -> dict[str, Any]:
    if api_key == ApiKey.DESCRIBE_CONFIGS:
        return {"resource_type": kind, "resource_name": name, "configuration_keys": configs}
    return {"resource_type": kind, "resource_name": name, "configs": configs or []}


async def ask(rig: Rig, api_key: int, *resources: dict[str, Any]) -> list[tuple[Any, ...]]:
    version = APIS[api_key].max_version
    answer = await rig.ask(api_key, version, {"resources": list(resources)})
    return [
        (one["resource_type"], one["resource_name"], one["error_code"], one["error_message"])
        for one in answer[field_of(api_key)]
    ]


@pytest.mark.parametrize("api_key", CONFIG_APIS)
def test_a_brokers_own_configs_are_asked_of_that_broker(api_key: int) -> None:
    async def scenario(rig: Rig) -> None:
        one, two = answering_broker(1, api_key), answering_broker(2, api_key)
        async with brokers(rig, one, two):
            for broker_id, stub in ((2, two), (1, one), (2, two)):
                for kind in (BROKER, LOGGER):
                    asked = resource(api_key, kind, str(broker_id))
                    answers = await ask(rig, api_key, asked)
                    assert answers == [(kind, str(broker_id), 0, f"by {broker_id}")]
                    [body] = stub.bodies(api_key)
                    assert body["resources"] == [asked]
                    stub.requests.clear()

    with_gateway(scenario)


@pytest.mark.parametrize("api_key", CONFIG_APIS)
def test_what_belongs_to_several_is_taken_apart_and_put_together_in_order(api_key: int) -> None:
    async def scenario(rig: Rig) -> None:
        one, two = answering_broker(1, api_key), answering_broker(2, api_key)
        async with brokers(rig, one, two):
            names = [(BROKER, "2"), (TOPIC, "2"), (BROKER, "77"), (BROKER, "1"), (BROKER, "")]
            answers = await ask(rig, api_key, *(resource(api_key, *name) for name in names))
            assert [answer[:2] for answer in answers] == names
            by = [answer[3] for answer in answers]
            assert (by[0], by[2], by[3]) == ("by 2", "there is no broker '77' to ask", "by 1")
            assert by[1] == by[4]
            assert by[1] in ("by 1", "by 2")
            assert [answer[2] for answer in answers] == [0, 0, INVALID_REQUEST, 0, 0]
            assert len(one.requests) + len(two.requests) == 3

    with_gateway(scenario)


def test_this_nodes_configs_can_be_read() -> None:
    async def scenario(rig: Rig) -> None:
        async with brokers(rig, AnsweringBroker(1)):
            key = ApiKey.DESCRIBE_CONFIGS
            for version in range(5):
                for asked, names in (
                    (None, ["data.dir", "num.partitions"]),
                    (["num.partitions", "other"], ["num.partitions"]),
                ):
                    body = {"resources": [resource(key, BROKER, "1000", asked)]}
                    [result] = (await rig.ask(key, version, body))["results"]
                    assert result["error_code"] == 0
                    assert [config["name"] for config in result["configs"]] == names
                    last = result["configs"][-1]
                    assert (last["value"], last["read_only"]) == ("2", True)
                    if version == 0:
                        assert last["is_default"] is False
                    else:
                        assert last["config_source"] == 4
            answers = await ask(rig, key, resource(key, LOGGER, "1000"))
            assert answers[0][2] == INVALID_REQUEST

    with_gateway(scenario)


def test_at_this_node_nothing_can_be_set_and_deleting_is_done_already() -> None:
    async def scenario(rig: Rig) -> None:
        async with brokers(rig, AnsweringBroker(1)):
            whole, single = ALTERING
            setting = {"name": "a", "value": "1"}
            assert (await ask(rig, whole, resource(whole, BROKER, "1000")))[0][2] == 0
            answers = await ask(rig, whole, resource(whole, BROKER, "1000", [setting]))
            assert answers[0][2] == INVALID_REQUEST
            for operation, error in ((0, INVALID_REQUEST), (1, 0), (2, INVALID_REQUEST)):
                change = setting | {"config_operation": operation}
                answers = await ask(rig, single, resource(single, BROKER, "1000", [change]))
                assert answers[0][2] == error

    with_gateway(scenario)


@pytest.mark.parametrize("api_key", CONFIG_APIS)
def test_without_the_broker_that_is_meant_the_connection_closes(api_key: int) -> None:
    async def scenario(rig: Rig) -> None:
        here, away = answering_broker(1, api_key), answering_broker(2, api_key)
        async with brokers(rig, here, away):
            await away.stop()
            for resources in (
                [resource(api_key, BROKER, "2")],
                [resource(api_key, BROKER, "2"), resource(api_key, BROKER, "1")],
            ):
                with pytest.raises(EOFError):
                    await ask(rig, api_key, *resources)
            await away.start()

    with_gateway(scenario)


@pytest.mark.parametrize(("said", "told"), [(5, 5), (3, 3), (0, 5), (29, 29)])
def test_a_topic_that_may_be_created_by_asking_is_left_to_a_broker(said: int, told: int) -> None:
    async def scenario(rig: Rig) -> None:
        key = ApiKey.METADATA

        def topics(body: dict[str, Any]) -> list[dict[str, Any]]:
            return [
                {"error_code": said, "name": one["name"], "partitions": []}
                for one in body["topics"]
            ]

        fixed = {"brokers": [], "cluster_id": None, "controller_id": -1}
        stub = AnsweringBroker(1, answer=answering(key, topics=topics, **fixed))
        async with brokers(rig, stub):
            rig.cluster.create("known", [[1]])
            names = ["known", "new", "not legal", "new", "other"]
            for version in (1, 4, 12):
                body = {"topics": [{"name": name} for name in names]}
                answer = await rig.ask(key, version, body)
                errors = {one["name"]: one["error_code"] for one in answer["topics"]}
                assert errors == {
                    "known": ProtocolError.NONE,
                    "new": told,
                    "not legal": ProtocolError.INVALID_TOPIC_EXCEPTION,
                    "other": told,
                }
                [passed] = stub.bodies(key)
                assert [one["name"] for one in passed["topics"]] == ["new", "other"]
                assert passed["allow_auto_topic_creation"]
                stub.requests.clear()
            asked = {"topics": [{"name": "new"}], "allow_auto_topic_creation": False}
            answer = await rig.ask(key, 12, asked)
            assert [one["error_code"] for one in answer["topics"]] == [
                ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
            ]
            await rig.ask(key, 12, {"topics": None})
            assert not stub.requests

    with_gateway(scenario)


def test_a_missing_coordinators_topic_is_left_to_a_broker_to_create() -> None:
    async def scenario(rig: Rig) -> None:
        key = ApiKey.FIND_COORDINATOR
        fields = {
            "error_code": ProtocolError.COORDINATOR_NOT_AVAILABLE,
            "node_id": -1,
            "host": "",
            "port": -1,
        }
        stub = AnsweringBroker(1, ranges=RANGES | {key: (0, 3)}, answer=answering(key, **fields))
        async with brokers(rig, stub):
            for version in range(7):
                body = {"key": "g", "coordinator_keys": ["g", "h"]}
                answer = await rig.ask(key, version, body)
                found = answer["coordinators"] if version >= 4 else [answer]
                assert [one["error_code"] for one in found] == [
                    ProtocolError.COORDINATOR_NOT_AVAILABLE
                ] * (2 if version >= 4 else 1)
                [passed] = stub.bodies(key)
                assert (passed["key"], passed["key_type"]) == ("g", 0)
                stub.requests.clear()
            await rig.ask(key, 3, {"key": "t", "key_type": 1})
            assert stub.bodies(key)[0]["key_type"] == 1
            stub.requests.clear()
            rig.cluster.create("__consumer_offsets", [[1]])
            assert (await rig.ask(key, 3, {"key": "g"}))["node_id"] == 1
            await rig.ask(key, 3, {"key": "g", "key_type": 9})
            assert not stub.requests

    with_gateway(scenario)


def test_features_cannot_be_finalized() -> None:
    async def scenario(rig: Rig) -> None:
        key = ApiKey.UPDATE_FEATURES
        body = {"feature_updates": [{"feature": "x", "max_version_level": 1}]}
        for version in range(2):
            answer = await rig.ask(key, version, body)
            assert answer["error_code"] == 0
            assert [(one["feature"], one["error_code"]) for one in answer["results"]] == [
                ("x", ProtocolError.INVALID_REQUEST)
            ]
        rig.cluster.controller = False
        assert (await rig.ask(key, 1, body))["error_code"] == ProtocolError.NOT_CONTROLLER

    with_gateway(scenario)


def test_this_node_has_a_data_folder_and_no_groups_and_no_transactions() -> None:
    async def scenario(rig: Rig) -> None:
        for key, field in ((ApiKey.LIST_GROUPS, "groups"), (ApiKey.LIST_TRANSACTIONS, None)):
            for version in range(APIS[key].min_version, APIS[key].max_version + 1):
                answer = await rig.ask(key, version, {})
                assert (answer["error_code"], answer[field or "transaction_states"]) == (0, [])
        for version in range(5):
            answer = await rig.ask(ApiKey.DESCRIBE_LOG_DIRS, version, {"topics": None})
            [folder] = answer["results"]
            found = (folder["error_code"], folder["log_dir"], folder["topics"])
            assert found == (0, "/data", [])

    with_gateway(scenario)
