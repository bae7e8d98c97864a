"""What nobody can read in a live cluster is a gap, and ends nothing."""

from __future__ import annotations

import pytest

from streaming.shadow.shadow import awaited
from streaming.zk.client import ZkSession
from streaming.zk.own_id import BrokersId
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import CONTROLLER_EPOCH_PATH, LOG_DIR_EVENT_PATH
from tests.e2e.waiting import wait_for
from tests.fixtures.znodes import log_dir_event_bytes
from tests.fixtures.zookeeper import SESSION_TIMEOUT_MS
from tests.integration.shadow.support import look_until, reader_of, register
from tests.unit.shadow.support import unloaded, watching


def test_a_failed_log_directory_that_cannot_be_read_is_counted_and_hides_no_other(
    live: ZkSession, seen: ZkReader
) -> None:
    live.ensure_path(LOG_DIR_EVENT_PATH)
    reader = reader_of(seen)
    look_until(reader, lambda look: look.load)
    for name, data in (("1", b"nonsense"), ("2", b""), ("3", log_dir_event_bytes(2))):
        live.create(f"{LOG_DIR_EVENT_PATH}/log_dir_event_{name}", data)
    look = look_until(reader, lambda look: look.failed_log_dirs)
    assert look.failed_log_dirs == {2}
    assert reader.counters["broken_notifications"] >= 2, "read again at each look"


def test_a_broker_that_has_our_id_ends_it(live: ZkSession, seen: ZkReader, zookeeper: str) -> None:
    """Our machine takes that id for its own, and would decide otherwise about its replicas."""
    reader = reader_of(seen, "controller.id=7")
    look_until(reader, lambda look: look.load)
    with ZkSession(zookeeper, SESSION_TIMEOUT_MS) as broker:
        register(broker, 7)
        with pytest.raises(BrokersId, match=r"controller\.id = 7 is the id of a broker at h:1"):
            look_until(reader, lambda look: look.inputs)
        with pytest.raises(BrokersId):
            reader_of(seen, "controller.id=7").look()


def test_a_helmstream_that_controls_the_cluster_is_no_broker(
    live: ZkSession, seen: ZkReader
) -> None:
    register(live, 7)  # after its session had claimed the role
    look = reader_of(seen, "controller.id=7").look()
    assert [one.kind for one in look.inputs if one.kind.startswith("broker_reg")] == []
    look = reader_of(seen, "controller.id=8").look()
    assert [one.kind for one in look.inputs if one.kind.startswith("broker_reg")] != []


def test_an_epoch_that_is_no_number_is_said_until_it_is_one(
    live: ZkSession, seen: ZkReader
) -> None:
    """No controller can be elected meanwhile, and the one there is was elected before."""
    live.set(CONTROLLER_EPOCH_PATH, b"seven")
    with watching(reader_of(seen).look) as watcher:
        wait_for("a look that fails", lambda: watcher.trouble)
        (said,) = awaited(unloaded(), watcher)
        assert said.startswith("ZooKeeper cannot be read: /controller_epoch")
        assert "seven" in said
        live.set(CONTROLLER_EPOCH_PATH, b"7")
        look = watcher.looks.get(timeout=60)
        assert (look.load.epoch, watcher.failure) == (7, None)
