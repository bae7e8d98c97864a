"""Which brokers have something to confirm, across crashes."""

from __future__ import annotations

from threading import Thread

import pytest

from checkpoints import durable
from streaming.sinks.pending import PendingBrokers


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pending.json"


@pytest.fixture
def pending(path):
    """Of a job that knows that nobody has missed anything."""
    path.write_bytes(b'{"pending":{}}')
    return PendingBrokers(path)


def marked(path, *ids):
    reopened = PendingBrokers(path)
    return [reopened.marked(id_) for id_ in ids]


def test_marks_are_on_disk_before_mark_returns_and_gone_after_it_is_confirmed(path):
    pending = PendingBrokers(path)
    pending.mark([1, 2], 0, 10)
    assert marked(path, 1, 2, 3) == [True, True, False]
    pending.confirm(1, 10)
    pending.save()
    assert marked(path, 1, 2, 3) == [False, True, False]
    assert not pending.marked(1)


def test_a_mark_outlives_a_crash_of_the_machine_and_a_confirmation_need_not(path, monkeypatch):
    synced = []
    monkeypatch.setattr(durable, "fsync_folder", synced.append)
    pending = PendingBrokers(path)
    pending.mark([1], 0, 10)
    assert synced == [path.parent]
    pending.confirm(1, 10)
    pending.save()
    assert synced == [path.parent]


def test_confirming_an_older_offset_leaves_a_newer_mark(path):
    pending = PendingBrokers(path)
    pending.mark([1], 0, 10)
    pending.mark([1], 0, 20)
    pending.confirm(1, 10)
    assert pending.marked(1)
    assert marked(path, 1) == [True]
    pending.confirm(1, 20)
    assert not pending.marked(1)


def test_a_broker_that_is_always_one_batch_behind_is_not_marked_from_the_beginning(path):
    pending = PendingBrokers(path)
    pending.mark([1], 0, 1)
    for end in range(1, 100):
        pending.mark([1], end, end + 1)
        pending.confirm(1, end)
    assert pending.since([1]) == 99
    pending.save()
    assert PendingBrokers(path).since([1]) == 99


def test_a_mark_never_goes_back(path):
    pending = PendingBrokers(path)
    pending.mark([1], 0, 20)
    pending.mark([1], 0, 10)
    pending.confirm(1, 10)
    assert pending.marked(1)


def test_clearing_a_broker_that_is_not_marked_changes_nothing(path):
    pending = PendingBrokers(path)
    pending.mark([1], 0, 5)
    pending.confirm(2, 5)
    pending.confirm(1, 5)
    pending.confirm(1, 5)
    pending.save()
    assert marked(path, 1, 2) == [False, False]


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b'{"pending":[1]}', b'{"pending":3}'])
def test_without_a_readable_file_every_broker_may_have_missed_something(path, content):
    if content is not None:
        path.write_bytes(content)
    pending = PendingBrokers(path)
    assert pending.marked(1)
    assert pending.since([1]) == 0
    assert pending.since([]) is None
    pending.mark([], 0, 0)
    assert marked(path, 1) == [pending.marked(1)] == [True], "nobody was told anything yet"
    pending.mark([2], 0, 5)
    assert marked(path, 1, 2) == [False, True], "from now on it is known"


def test_what_nobody_knew_to_be_missed_stays_missed_until_it_is_confirmed(path):
    PendingBrokers(path).mark([1], 100, 100)
    again = PendingBrokers(path)
    assert again.since([1]) == 0
    again.mark([1], 100, 100)
    again.confirm(1, 100)
    again.mark([1], 200, 210)
    assert again.since([1]) == 200


def test_a_crash_while_saving_leaves_the_file_before(path, monkeypatch):
    pending = PendingBrokers(path)
    pending.mark([1], 0, 5)
    monkeypatch.setattr("os.fsync", lambda fd: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        pending.mark([2], 0, 6)
    assert marked(path, 1, 2) == [True, False]


def test_what_a_restart_sends_again_does_not_confirm_a_later_batch(path):
    """The image of a restart has folded up to 10; the batch that ends at 20 is run again."""
    PendingBrokers(path).mark([1, 2], 0, 20)
    again = PendingBrokers(path)
    again.mark([1, 2], 0, 10)
    again.confirm(1, 10)
    assert again.marked(1)
    again.mark([1], 0, 20)
    again.confirm(1, 20)
    again.save()
    assert marked(path, 1, 2) == [False, True]


def test_the_first_event_that_may_be_missing_stays_until_all_is_confirmed(path, pending):
    pending.mark([1], 5, 10)
    pending.mark([1, 2], 10, 20)
    assert (pending.since([1]), pending.since([2]), pending.since([1, 2])) == (5, 10, 5)
    assert PendingBrokers(path).since([1, 2]) == 5
    pending.confirm(1, 20)
    assert (pending.since([1]), pending.since([1, 2])) == (None, 10)


def test_a_mark_that_begins_earlier_is_on_disk_at_once(path, pending):
    pending.mark([1], 10, 20)
    pending.mark([1], 5, 20)
    assert PendingBrokers(path).since([1]) == 5


def test_a_confirmation_waits_while_somebody_asks_what_is_missing(pending):
    pending.mark([1], 5, 10)
    confirming = Thread(target=pending.confirm, args=(1, 10))

    class Answering(int):
        """A broker whose answer comes in once it was found to be marked."""

        looked_up = 0

        def __hash__(self):
            self.looked_up += 1
            if self.looked_up == 2:
                confirming.start()
                confirming.join(timeout=0.2)
            return hash(int(self))

    assert pending.since([Answering(1)]) == 5
    confirming.join(timeout=10)
    assert pending.since([1]) is None
