"""The bytes of machine state: a sample of each format version, frozen, is read for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkpoints.machine_format import READABLE_VERSIONS, decode_machine, encode_machine
from state.blocks import decode_block, encode_block
from state.cluster.authority import Phase
from state.cluster.cluster import Cluster
from state.errors import CorruptBlock
from state.partitions.slot import Slot
from state.partitions.table import Deleted, Deletion
from state.protocol_errors import ProtocolError
from state.routing import CLUSTER_KEY
from state.step import new_machine
from state.topic_ids import topic_id_from_text, topic_id_to_text
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, broker

FROZEN = Path(__file__).parents[2] / "frozen"
SLOT, CLUSTER = FROZEN / "slot-v6.bin", FROZEN / "cluster-v6.bin"

DELETED_ID = "ERECAwQFBgcICQoLDA0ODw"
PARTITION_BYTES_MAX = 100
"""What a partition of three replicas may take: a million of them are 100 MB then."""


def sample() -> Controller:
    """A cluster with something in every field."""
    endpoint = {"listener": "PLAINTEXT", "host": "h", "port": 9092, "security_protocol": 0}
    controller = Controller(
        (1, 2, 3),
        unclean_leader_election_enable=True,
        unclean_recovery_manager_enabled=True,
        leader_deprioritized_list="9",
        leader_rebalance_sync_wait_ms=70_000,
    )
    rich = broker(4, 104, "rack-a") | {"endpoints": [endpoint]}
    controller.brokers(registered=[rich])
    topic_id = "AAECAwQFBgcICQoLDA0ODw"
    controller.topic("t", [[1, 2, 3], [2, 3]], topic_id=topic_id, unclean=False, zk_version=2)
    controller.topic("u", [[4, 1]], [stored(1, [1])], adding=[[4]], removing=[[1]])
    controller.alter([3, 1])
    controller.shut_down(2)
    failed = {
        "broker_id": 4,
        "broker_epoch": 104,
        "partitions": [0],
        "errors": [ProtocolError.KAFKA_STORAGE_ERROR],
    }
    controller.happen("leader_and_isr_answered", "u", topic="u", **failed)
    asked = {"request_id": "r", "broker_id": 1, "broker_epoch": 101}
    controller.happen("producer_ids_requested", **asked)
    controller.happen("topic_deletion_requested", "u", topic="u")
    controller.happen("controlled_shutdown_allowed", broker_id=3)
    controller.happen("topic_config_changed", "t", topic="t", unclean=False, min_insync_replicas=2)
    controller.topic("v", [[1]], topic_id=DELETED_ID)
    controller.happen("topic_deletion_requested", "v", topic="v")
    done = {"broker_id": 1, "broker_epoch": 101, "partitions": [0], "errors": [0]}
    controller.happen("stop_replica_answered", "v", topic="v", **done)
    return controller


def test_version_6_of_a_slot_is_still_written_and_read(rewrite_golden: bool) -> None:
    data = sample().states[0]
    if rewrite_golden and not SLOT.exists():  # a frozen file is never written again
        SLOT.write_bytes(data)
    assert data == SLOT.read_bytes()


def test_version_6_of_the_cluster_machine_is_still_written_and_read(rewrite_golden: bool) -> None:
    data = sample().states[CLUSTER_KEY]
    if rewrite_golden and not CLUSTER.exists():
        CLUSTER.write_bytes(data)
    assert data == CLUSTER.read_bytes()


@pytest.mark.parametrize("version", READABLE_VERSIONS)
def test_a_frozen_slot_says_what_it_said(version: int) -> None:
    slot = decode_machine((FROZEN / f"slot-v{version}.bin").read_bytes())
    assert isinstance(slot, Slot)
    assert (slot.authority.phase, slot.authority.epoch) == (Phase.ACTIVE, 5)
    assert slot.config.unclean_default
    assert slot.config.unclean_recovery == (version > 3)
    assert slot.config.deprioritized == ((9,) if version > 4 else ())
    assert slot.config.rebalance_sync_wait_ms == (70_000 if version > 5 else 0)
    assert (slot.brokers.by_id[4].epoch, slot.brokers.by_id[4].rack) == (104, "rack-a")
    assert slot.brokers.by_id[4].endpoints[0]["port"] == 9092
    assert slot.brokers.shutting_down == {2}
    assert slot.brokers.shutdown_allowed == ({3} if version > 1 else set())
    first, second = slot.table.topics
    assert (first.name, first.topic_id, first.unclean, first.zk_version) == (
        "t",
        bytes(range(16)),
        False,
        2,
    )
    assert first.min_insync == (2 if version > 1 else None)
    assert (second.name, second.unclean, second.min_insync) == ("u", None, None)
    assert slot.table.deletions == {"u": Deletion(started=False, halted=False)}
    deleted = {"v": Deleted(topic_id_from_text(DELETED_ID), 15)} if version > 2 else {}
    assert slot.table.deleted == deleted
    assert slot.config.delete_topics
    assert not slot.authority.paused
    rows = slot.table.rows
    assert rows.replicas.tolist() == [[1, 2, 3], [2, 3, -1], [4, 1, -1]]
    assert rows.isr.tolist() == [[3, 1, -1], [3, -1, -1], [1, -1, -1]]
    assert rows.leader.tolist() == [1, 3, 1]
    assert rows.leader_epoch.tolist() == [0, 1, 1]
    assert rows.zk_version.tolist() == [1, 1, 1]
    assert rows.controller_epoch.tolist() == [5, 5, 5]
    assert rows.offline_dir.tolist() == [[False] * 3, [False] * 3, [True, False, False]]
    assert rows.adding.tolist()[2] == [True, False, False]
    assert rows.removing.tolist()[2] == [False, True, False]


@pytest.mark.parametrize("version", READABLE_VERSIONS)
def test_a_frozen_cluster_machine_says_what_it_said(version: int) -> None:
    cluster = decode_machine((FROZEN / f"cluster-v{version}.bin").read_bytes())
    assert isinstance(cluster, Cluster)
    assert (cluster.producer_id_end, cluster.producer_id_version) == (999, 0)
    assert cluster.timers == {"leader_rebalance": 6002}
    assert sorted(cluster.brokers.by_id) == [1, 2, 3, 4]


@pytest.mark.parametrize("key", [CLUSTER_KEY, 0])
def test_a_machine_that_has_seen_nothing_is_written_and_read(key: int) -> None:
    data = encode_machine(new_machine(key))
    assert encode_machine(decode_machine(data)) == data


def test_a_decoded_machine_can_be_changed() -> None:
    slot = decode_machine(SLOT.read_bytes())
    assert isinstance(slot, Slot)
    slot.table.rows.leader[0] = 7
    assert decode_machine(encode_machine(slot)).table.rows.leader[0] == 7


def test_a_partition_of_three_replicas_takes_few_bytes_before_it_is_packed() -> None:
    controller = Controller((1, 2, 3))
    without = len(controller.states[0])
    replicas = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3]]
    for number in range(40):
        topic_id = topic_id_to_text(bytes([number + 1] * 16))
        controller.topic(f"of-some-length-{number}", replicas, topic_id=topic_id)
    partitions = 40 * len(replicas)
    assert controller.slot.table.rows.isr.tolist()[0] == [1, 2, 3]
    assert len(controller.states[0]) - without <= PARTITION_BYTES_MAX * partitions


def test_a_pause_and_a_rebalance_under_way_are_written_and_read() -> None:
    controller = sample()
    controller.happen("controller_paused", reason="test")
    slot = controller.slot
    slot.authority.rebalancing = (1, 4)
    slot.authority.behind_since = ((1, 5_000), (4, 6_000))
    again = decode_machine(encode_machine(slot))
    assert (again.authority.phase, again.authority.paused) == (Phase.PAUSED, True)
    assert again.authority.rebalancing == (1, 4)
    assert again.authority.behind_since == ((1, 5_000), (4, 6_000))


def test_another_version_is_refused_by_its_number() -> None:
    columns, extra = decode_block(SLOT.read_bytes())
    with pytest.raises(CorruptBlock, match="format version 7, this program reads 1, 2, 3, 4, 5, 6"):
        decode_machine(encode_block(columns, extra | {"format": 7}))


def test_a_missing_field_is_named() -> None:
    columns, extra = decode_block(SLOT.read_bytes())
    for name in extra.keys() - {"format", "shutdown_allowed", "deleted"}:
        left = {key: value for key, value in extra.items() if key != name}
        with pytest.raises(CorruptBlock, match=f"no field '{name}'"):
            decode_machine(encode_block(columns, left))
    some = {name: column for name, column in columns.items() if name != "isr"}
    with pytest.raises(CorruptBlock, match="no field 'isr'"):
        decode_machine(encode_block(some, extra))


def test_a_field_of_another_type_is_refused() -> None:
    columns, extra = decode_block(SLOT.read_bytes())
    for wrong in ({"authority": {"phase": "asleep"}}, {"brokers": [[1]]}, {"topics": [["t"]]}):
        with pytest.raises(CorruptBlock, match="broken machine state"):
            decode_machine(encode_block(columns, extra | wrong))
