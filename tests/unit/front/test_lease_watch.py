"""The lease on a loop's time: what is said of the job, and that it runs out without being asked."""

from __future__ import annotations

from streaming.front.lease_watch import LeaseWatch
from tests.unit.front.standing_time import StandingTime

LEASE_S = 10.0


class Watched:
    """A watch on an empty log that has looked once, and what it said since."""

    def __init__(self) -> None:
        self.time = StandingTime()
        self.healthy: list[bool] = []
        self.expired: list[str] = []
        self.watch = LeaseWatch(
            self.time, LEASE_S, 0, on_healthy=self.healthy.append, on_expired=self.expired.append
        )
        self.watch.look()

    def pass_s(self, seconds: float) -> None:
        self.time.pass_to(self.time.now_ms + int(seconds * 1000))


def test_the_lease_runs_out_by_itself_and_is_said_to_be_once():
    watched = Watched()
    watched.pass_s(LEASE_S - 0.001)
    assert watched.expired == []
    watched.pass_s(0.001)
    assert watched.expired == ["no job was connected for 10 s"]
    watched.pass_s(5 * LEASE_S)
    assert len(watched.expired) == 1
    watched.watch.log_grew(1)
    assert len(watched.expired) == 2, "what happens then shows that it still has"


def test_health_is_said_of_whatever_happens():
    watched = Watched()
    watched.watch.job_connected()
    watched.watch.log_grew(3)
    watched.watch.batch_completed(2)
    watched.watch.folded(3)
    watched.watch.job_gone()
    assert watched.healthy == [True, False, False, True, False]


def test_a_job_that_completes_batches_keeps_the_lease_until_it_completes_none():
    watched = Watched()
    watched.watch.job_connected()
    for end in range(1, 8):
        watched.watch.log_grew(end + 1)
        watched.pass_s(LEASE_S / 2)
        watched.watch.batch_completed(end)
    assert watched.expired == []
    watched.pass_s(LEASE_S)
    assert watched.expired == ["1 events waited and no batch was completed for 10 s"]


def test_a_lease_that_had_run_out_is_watched_again_once_a_job_is_back():
    watched = Watched()
    watched.pass_s(LEASE_S)
    watched.watch.job_connected()
    watched.watch.job_gone()
    watched.pass_s(LEASE_S)
    assert len(watched.expired) == 2


def test_nothing_is_said_after_the_end():
    watched = Watched()
    watched.watch.stop()
    watched.pass_s(2 * LEASE_S)
    assert watched.expired == []
