"""What nobody can read in a live cluster is a gap, and ends nothing."""

from __future__ import annotations

from streaming.zk.client import ZkSession
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import LOG_DIR_EVENT_PATH
from tests.fixtures.znodes import log_dir_event_bytes
from tests.integration.shadow.support import look_until, reader_of


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
