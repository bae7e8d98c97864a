"""ApiVersions, DescribeCluster, FindCoordinator and InitProducerId at every version."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.gateway.coordinators import coordinator_partition, java_string_hash
from streaming.gateway.passing.apis import PASSED_VERSIONS
from streaming.gateway.ports import DecisionTimedOut, NotController
from streaming.wire.apis import APIS, GATEWAY_APIS, ApiKey
from streaming.wire.frames import frame
from streaming.wire.requests import encode_request
from tests.unit.gateway.support import CLUSTER_ID, NODE_ID, Rig, with_gateway

SOFTWARE = {"client_software_name": "apache-kafka-java", "client_software_version": "3.9.2"}


def versions(key: ApiKey) -> range:
    return range(APIS[key].min_version, APIS[key].max_version + 1)


@pytest.mark.parametrize("version", versions(ApiKey.API_VERSIONS))
def test_api_versions_names_what_is_served_and_nothing_else(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        answer = await rig.ask(ApiKey.API_VERSIONS, version, SOFTWARE)
        assert answer["error_code"] == 0
        ranges = {a["api_key"]: (a["min_version"], a["max_version"]) for a in answer["api_keys"]}
        ours = {k: (APIS[k].min_version, APIS[k].max_version) for k in GATEWAY_APIS}
        assert ranges == {**ours, **PASSED_VERSIONS}
        assert answer["finalized_features_epoch"] == -1

    with_gateway(scenario)


@pytest.mark.parametrize("name", ["", "-x", "x-", "a b", "ä"])
@pytest.mark.parametrize("field", SOFTWARE)
def test_malformed_client_software_is_refused_from_version_3_on(name: str, field: str) -> None:
    async def scenario(rig: Rig) -> None:
        for version in versions(ApiKey.API_VERSIONS):
            answer = await rig.ask(ApiKey.API_VERSIONS, version, SOFTWARE | {field: name})
            assert answer["error_code"] == (
                ProtocolError.INVALID_REQUEST if version >= 3 else ProtocolError.NONE
            )

    with_gateway(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_CLUSTER))
def test_describe_cluster(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        key, body = ApiKey.DESCRIBE_CLUSTER, {"include_cluster_authorized_operations": True}
        answer = await rig.ask(key, version, body)
        assert (answer["error_code"], answer["cluster_id"]) == (0, CLUSTER_ID)
        assert answer["controller_id"] == NODE_ID
        nodes = [(n["broker_id"], n["host"], n["port"], n["rack"]) for n in answer["brokers"]]
        assert nodes == [
            (1, "b1", 29101, "a"),
            (2, "b2", 29102, "b"),
            (1000, "127.0.0.1", rig.port(), "a"),
        ]
        assert answer["cluster_authorized_operations"] == 0b1_1111_1010_0000
        inside = await rig.ask(key, version, {}, "INTERNAL")
        assert [n["broker_id"] for n in inside["brokers"]] == [1, 2, 3, 1000]
        assert inside["cluster_authorized_operations"] == -(2**31)
        rig.cluster.controller = False
        answer = await rig.ask(key, version, body)
        assert ([n["broker_id"] for n in answer["brokers"]], answer["controller_id"]) == (
            [1, 2, 1000],
            -1,
        )
        rig.cluster.has_image = False
        with pytest.raises(EOFError):
            await rig.ask(key, version, body)

    with_gateway(scenario)


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [(2, ProtocolError.MISMATCHED_ENDPOINT_TYPE), (7, ProtocolError.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_describe_cluster_of_other_endpoint_types(endpoint_type: int, error: int) -> None:
    async def scenario(rig: Rig) -> None:
        answer = await rig.ask(ApiKey.DESCRIBE_CLUSTER, 1, {"endpoint_type": endpoint_type})
        assert (answer["error_code"], answer["brokers"]) == (error, [])

    with_gateway(scenario)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),
    ],
)
def test_string_hash_is_javas(text: str, value: int) -> None:
    assert java_string_hash(text) == value % 2**32


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        pytest.param("mixed", 0, id="a positive hash"),
        pytest.param("static", 3, id="a negative one, where a real broker of 3.9 put it"),
        pytest.param("polygenelubricants", 0, id="the least int"),
    ],
)
def test_the_partition_of_a_coordinator(key, partition):
    assert coordinator_partition(key, 5) == partition


def coordinators(version: int, answer: dict[str, Any]) -> list[tuple[int, int, str, int]]:
    found = answer["coordinators"] if version >= 4 else [answer]
    return [(c["error_code"], c["node_id"], c["host"], c["port"]) for c in found]


def keys_body(version: int, keys: list[str], key_type: int) -> dict[str, Any]:
    body: dict[str, Any] = {"coordinator_keys": keys} if version >= 4 else {"key": keys[0]}
    return body | ({"key_type": key_type} if version >= 1 else {})


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR))
def test_find_coordinator_of_groups_and_transactions(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        # "a" hashes to 97 and "b" to 98: rows 1 and 2 of three, rows 1 and 0 of two.
        rig.cluster.create("__consumer_offsets", [[2], [1], [2]])
        rig.cluster.create("__transaction_state", [[1], [2]])
        key = ApiKey.FIND_COORDINATOR
        answer = await rig.ask(key, version, keys_body(version, ["a", "b"], 0))
        found = coordinators(version, answer)
        assert found == [(0, 1, "b1", 29101), (0, 2, "b2", 29102)][: 2 if version >= 4 else 1]
        if version >= 4:
            assert [c["key"] for c in answer["coordinators"]] == ["a", "b"]
        if version >= 1:
            answer = await rig.ask(key, version, keys_body(version, ["a", "b"], 1), "INTERNAL")
            found = coordinators(version, answer)
            assert found == [(0, 2, "b2", 29202), (0, 1, "b1", 29201)][: len(found)]
            answer = await rig.ask(key, version, keys_body(version, ["a"], 2))
            assert coordinators(version, answer) == [(15 if version >= 6 else 42, -1, "", -1)]
            answer = await rig.ask(key, version, keys_body(version, ["a"], 9))
            assert coordinators(version, answer) == [(42, -1, "", -1)]

    with_gateway(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR))
def test_coordinators_that_are_not_there_yet(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        async def group_a() -> list[Any]:
            body = keys_body(version, ["a"], 0)
            return coordinators(version, await rig.ask(ApiKey.FIND_COORDINATOR, version, body))

        nobody = [(15, -1, "", -1)]
        assert await group_a() == nobody  # no topic
        rig.cluster.create("__consumer_offsets", [[2], [3]])
        assert await group_a() == nobody  # broker 3 is not on this listener
        rig.cluster.happen("broker_registrations_changed", "", {"unregistered": [3]})
        assert await group_a() == nobody  # no leader
        rig.cluster.has_image = False
        assert await group_a() == nobody

    with_gateway(scenario)


@pytest.mark.parametrize("missing", range(3))
def test_a_partition_without_a_state_changes_nobody_elses_coordinator(missing: int) -> None:
    """The image has none of these; whose key belongs to one waits for it."""

    async def scenario(rig: Rig) -> None:
        rig.cluster.create("__consumer_offsets", [[1], [2], [3]])
        rig.cluster.assigned["__consumer_offsets"] = 3
        rig.cluster.known.forget_partition("__consumer_offsets", missing)
        # "c", "a", "b" belong to partitions 0, 1 and 2.
        answer = await rig.ask(
            ApiKey.FIND_COORDINATOR, 4, keys_body(4, ["c", "a", "b"], 0), "INTERNAL"
        )
        leaders = [-1 if number == missing else number + 1 for number in range(3)]
        assert [one[1] for one in coordinators(4, answer)] == leaders

    with_gateway(scenario)


@pytest.mark.parametrize("version", range(4, 7))
def test_a_null_among_the_keys_is_malformed(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        client = await rig.client()
        body = {"key_type": 0, "coordinator_keys": ["a"]}
        request = encode_request(ApiKey.FIND_COORDINATOR, version, 1, "c", body)
        assert request[-4:] == b"\x02\x02a\x00"
        client.writer.write(frame(request[:-4] + b"\x02\x00\x00"))
        await client.wait_closed()
        assert rig.gateway.counters["closed_malformed"] == 1

    with_gateway(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.INIT_PRODUCER_ID))
def test_init_producer_id_of_idempotent_producers(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        client = await rig.client()
        body = {"transactional_id": None, "transaction_timeout_ms": 0}
        for expected in (0, 1, 2):
            answer = await client.ask(ApiKey.INIT_PRODUCER_ID, version, body)
            values = (answer["error_code"], answer["producer_id"], answer["producer_epoch"])
            assert values == (0, expected, 0)
        (payload,) = rig.cluster.payloads("producer_ids_requested")
        assert (payload["broker_id"], payload["broker_epoch"]) == (NODE_ID, -1)

    with_gateway(scenario)


@pytest.mark.parametrize("version", versions(ApiKey.INIT_PRODUCER_ID))
def test_init_producer_id_of_transactional_producers_sends_them_to_the_coordinator(
    version: int,
) -> None:
    async def scenario(rig: Rig) -> None:
        for transactional_id, error in (
            ("tx", ProtocolError.NOT_COORDINATOR),
            ("", ProtocolError.INVALID_REQUEST),
        ):
            body = {"transactional_id": transactional_id, "transaction_timeout_ms": 0}
            answer = await rig.ask(ApiKey.INIT_PRODUCER_ID, version, body)
            assert (answer["error_code"], answer["producer_id"]) == (error, -1)
        assert rig.cluster.payloads("producer_ids_requested") == []

    with_gateway(scenario)


@pytest.mark.parametrize("version", range(3, 6))
def test_a_producer_id_and_its_epoch_come_together(version: int) -> None:
    async def scenario(rig: Rig) -> None:
        for producer_id, epoch, error in (
            (5, -1, ProtocolError.INVALID_REQUEST),
            (-1, 5, ProtocolError.INVALID_REQUEST),
            (5, 5, ProtocolError.NONE),
        ):
            body = {"transactional_id": None, "producer_id": producer_id, "producer_epoch": epoch}
            answer = await rig.ask(ApiKey.INIT_PRODUCER_ID, version, body)
            assert answer["error_code"] == error

    with_gateway(scenario)


def test_a_block_is_refilled_before_it_runs_out_and_no_id_comes_twice() -> None:
    async def scenario(rig: Rig) -> None:
        async def take(count: int) -> list[int]:
            client = await rig.client()
            answers = [
                await client.ask(ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": None})
                for _ in range(count)
            ]
            return [answer["producer_id"] for answer in answers]

        found = await asyncio.gather(*(take(89) for _ in range(10)))
        ids = [producer_id for part in found for producer_id in part]
        assert len(rig.cluster.payloads("producer_ids_requested")) == 1
        ids += await take(10)  # 900 taken, 100 left
        assert len(rig.cluster.payloads("producer_ids_requested")) == 2
        ids += await take(200)
        assert sorted(ids) == list(range(1100))

    with_gateway(scenario)


def test_many_producers_at_once_share_one_refill() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.gate = asyncio.Event()
        asks = [
            asyncio.create_task(rig.ask(ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": None}))
            for _ in range(30)
        ]
        await rig.counted("requests_InitProducerId", 30)
        rig.cluster.gate.set()
        answers = await asyncio.gather(*asks)
        assert sorted(answer["producer_id"] for answer in answers) == list(range(30))
        assert len(rig.cluster.payloads("producer_ids_requested")) == 1

    with_gateway(scenario)


@pytest.mark.parametrize("failure", [NotController("x"), DecisionTimedOut("x")])
def test_without_a_block_producers_are_asked_to_retry_and_can(failure: Exception) -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.fail = failure
        answer = await rig.ask(ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": None})
        assert (answer["error_code"], answer["producer_epoch"]) == (
            ProtocolError.COORDINATOR_LOAD_IN_PROGRESS,
            -1,
        )
        rig.cluster.fail = None
        answer = await rig.ask(ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": None})
        assert (answer["error_code"], answer["producer_id"]) == (0, 0)

    with_gateway(scenario)


def test_ids_of_a_block_stay_good_when_the_role_is_lost() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.ask(ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": None})
        rig.cluster.controller = False
        answer = await rig.ask(ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": None})
        assert (answer["error_code"], answer["producer_id"]) == (0, 1)

    with_gateway(scenario)
