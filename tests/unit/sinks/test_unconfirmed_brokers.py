"""Which brokers have something to confirm, across crashes."""

from __future__ import annotations

from threading import Thread

import pytest

from checkpoints import durable
from streaming.sinks import unconfirmed_brokers
from streaming.sinks.unconfirmed_brokers import UnconfirmedBrokers


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pending.json"


@pytest.fixture
def unconfirmed(path):
    """Of a job that knows that nobody has missed anything."""
    path.write_bytes(b'{"pending":{}}')
    return UnconfirmedBrokers(path)


def marked(path, *ids):
    reopened = UnconfirmedBrokers(path)
    return [reopened.marked(id_) for id_ in ids]


def test_marks_are_on_disk_before_mark_returns_and_gone_after_it_is_confirmed(path):
    unconfirmed = UnconfirmedBrokers(path)
    unconfirmed.mark([1, 2], 0, 10)
    assert marked(path, 1, 2, 3) == [True, True, False]
    unconfirmed.confirm(1, 10)
    unconfirmed.save()
    assert marked(path, 1, 2, 3) == [False, True, False]
    assert not unconfirmed.marked(1)


def test_a_mark_outlives_a_crash_of_the_machine_and_a_confirmation_need_not(path, monkeypatch):
    synced = []
    monkeypatch.setattr(durable, "fsync_folder", synced.append)
    unconfirmed = UnconfirmedBrokers(path)
    unconfirmed.mark([1], 0, 10)
    assert synced == [path.parent]
    unconfirmed.confirm(1, 10)
    unconfirmed.save()
    assert synced == [path.parent]


def test_confirming_an_older_offset_leaves_a_newer_mark(path):
    unconfirmed = UnconfirmedBrokers(path)
    unconfirmed.mark([1], 0, 10)
    unconfirmed.mark([1], 0, 20)
    unconfirmed.confirm(1, 10)
    assert unconfirmed.marked(1)
    assert marked(path, 1) == [True]
    unconfirmed.confirm(1, 20)
    assert not unconfirmed.marked(1)


def test_a_broker_that_is_always_one_batch_behind_is_not_marked_from_the_beginning(path):
    unconfirmed = UnconfirmedBrokers(path)
    unconfirmed.mark([1], 0, 1)
    for end in range(1, 100):
        unconfirmed.mark([1], end, end + 1)
        unconfirmed.confirm(1, end)
    assert unconfirmed.since([1]) == 99
    unconfirmed.save()
    assert UnconfirmedBrokers(path).since([1]) == 99


def test_a_mark_never_goes_back(path):
    unconfirmed = UnconfirmedBrokers(path)
    unconfirmed.mark([1], 0, 20)
    unconfirmed.mark([1], 0, 10)
    unconfirmed.confirm(1, 10)
    assert unconfirmed.marked(1)


def test_clearing_a_broker_that_is_not_marked_changes_nothing(path):
    unconfirmed = UnconfirmedBrokers(path)
    unconfirmed.mark([1], 0, 5)
    unconfirmed.confirm(2, 5)
    unconfirmed.confirm(1, 5)
    unconfirmed.confirm(1, 5)
    unconfirmed.save()
    assert marked(path, 1, 2) == [False, False]


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b'{"pending":[1]}', b'{"pending":3}'])
def test_without_a_readable_file_every_broker_may_have_missed_something(path, content):
    if content is not None:
        path.write_bytes(content)
    unconfirmed = UnconfirmedBrokers(path)
    assert unconfirmed.marked(1)
    assert unconfirmed.since([1]) == 0
    assert unconfirmed.since([]) is None
    unconfirmed.mark([], 0, 0)
    assert marked(path, 1) == [unconfirmed.marked(1)] == [True], "nobody was told anything yet"
    unconfirmed.mark([2], 0, 5)
    assert marked(path, 1, 2) == [False, True], "from now on it is known"


def test_what_nobody_knew_to_be_missed_stays_missed_until_it_is_confirmed(path):
    UnconfirmedBrokers(path).mark([1], 100, 100)
    again = UnconfirmedBrokers(path)
    assert again.since([1]) == 0
    again.mark([1], 100, 100)
    again.confirm(1, 100)
    again.mark([1], 200, 210)
    assert again.since([1]) == 200


def test_a_crash_while_saving_leaves_the_file_before(path, monkeypatch):
    unconfirmed = UnconfirmedBrokers(path)
    unconfirmed.mark([1], 0, 5)
    monkeypatch.setattr("os.fsync", lambda fd: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        unconfirmed.mark([2], 0, 6)
    assert marked(path, 1, 2) == [True, False]


def test_what_a_restart_sends_again_does_not_confirm_a_later_batch(path):
    """The image of a restart has folded up to 10; the batch that ends at 20 is run again."""
    UnconfirmedBrokers(path).mark([1, 2], 0, 20)
    again = UnconfirmedBrokers(path)
    again.mark([1, 2], 0, 10)
    again.confirm(1, 10)
    assert again.marked(1)
    again.mark([1], 0, 20)
    again.confirm(1, 20)
    again.save()
    assert marked(path, 1, 2) == [False, True]


def test_the_first_event_that_may_be_missing_stays_until_all_is_confirmed(path, unconfirmed):
    unconfirmed.mark([1], 5, 10)
    unconfirmed.mark([1, 2], 10, 20)
    assert (unconfirmed.since([1]), unconfirmed.since([2]), unconfirmed.since([1, 2])) == (5, 10, 5)
    assert UnconfirmedBrokers(path).since([1, 2]) == 5
    unconfirmed.confirm(1, 20)
    assert (unconfirmed.since([1]), unconfirmed.since([1, 2])) == (None, 10)


def test_a_mark_that_begins_earlier_is_on_disk_at_once(path, unconfirmed):
    unconfirmed.mark([1], 10, 20)
    unconfirmed.mark([1], 5, 20)
    assert UnconfirmedBrokers(path).since([1]) == 5


def test_removals_are_listed_while_somebody_may_have_missed_them(path, unconfirmed):
    unconfirmed.mark([1], 10, 20, [12, 12, 17])
    unconfirmed.mark([1, 2], 20, 30)
    unconfirmed.mark([], 30, 40, [35])
    for kept in (unconfirmed, UnconfirmedBrokers(path)):
        assert kept.removed_on(range(10, 40)) == [range(n, n + 1) for n in (12, 17, 35)]
        assert kept.removed_on(range(13, 35)) == [range(17, 18)]
    unconfirmed.confirm(1, 30)
    unconfirmed.save()
    again = UnconfirmedBrokers(path)
    assert again.removed_on(range(again.since([2]), 40)) == [range(35, 36)]
    assert again.removed_on(range(10, 20)) == [], "nobody has missed them"


def test_removals_of_a_time_without_a_list_are_looked_for(path):
    path.write_bytes(b'{"pending":{"1":[10,20]}}')
    unconfirmed = UnconfirmedBrokers(path)
    unconfirmed.mark([1], 20, 30, [25])
    assert UnconfirmedBrokers(path).removed_on(range(10, 30)) == [range(10, 20), range(25, 26)]
    path.unlink()
    unknown = UnconfirmedBrokers(path)
    assert unknown.removed_on(range(30)) == [range(30)]
    unknown.mark([], 20, 30, [25])
    assert unknown.removed_on(range(30)) == [range(30)], "nobody was told anything yet"
    unknown.mark([1], 30, 40, [31])
    assert UnconfirmedBrokers(path).removed_on(range(40)) == [range(30), range(31, 32)]


def test_a_batch_that_is_run_again_lists_its_removals_once(path, unconfirmed):
    unconfirmed.mark([1], 10, 20, [12])
    again = UnconfirmedBrokers(path)
    again.mark([1], 10, 20, [12])
    assert again.removed_on(range(20)) == [range(12, 13)]


def test_the_list_of_removals_is_bounded(path, unconfirmed, monkeypatch):
    monkeypatch.setattr(unconfirmed_brokers, "_REMOVALS_KEPT", 2)
    for event in range(10, 15):
        unconfirmed.mark([1], event, event + 1, [event])
    single = [range(13, 14), range(14, 15)]
    assert UnconfirmedBrokers(path).removed_on(range(10, 15)) == [range(10, 13), *single]


def test_a_confirmation_waits_while_somebody_asks_what_is_missing(unconfirmed):
    unconfirmed.mark([1], 5, 10)
    confirming = Thread(target=unconfirmed.confirm, args=(1, 10))

    class Answering(int):
        """A broker whose answer comes in once it was found to be marked."""

        looked_up = 0

        def __hash__(self):
            self.looked_up += 1
            if self.looked_up == 2:
                confirming.start()
                confirming.join(timeout=0.2)
            return hash(int(self))

    assert unconfirmed.since([Answering(1)]) == 5
    confirming.join(timeout=10)
    assert unconfirmed.since([1]) is None
