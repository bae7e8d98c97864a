"""When the lease runs out: pure, with times that the test makes up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streaming.front.lease import Lease


def healthy(lease_s: float = 10.0) -> Lease:
    lease = Lease(lease_s, end_offset=5, now_s=0.0)
    lease.job_connected()
    lease.batch_completed(5, 1.0)
    return lease


def test_a_folded_log_and_a_connected_job_never_expire():
    lease = healthy()
    assert lease.job_healthy
    assert lease.expires_s() is None
    assert lease.expiry_reason(1e9) is None


def test_a_job_that_cost_the_role_is_healthy_when_its_query_folds():
    lease = healthy()
    lease.doubt_job()
    lease.job_gone(2.0)
    lease.job_connected()
    lease.appended(6, 3.0)
    lease.batch_completed(6, 3.0)
    assert not lease.job_healthy
    lease.query_folded()
    assert lease.job_healthy


def test_a_log_that_was_never_folded_here_is_not_known_to_be():
    lease = Lease(10.0, end_offset=5, now_s=0.0)
    lease.job_connected()
    assert not lease.job_healthy
    assert Lease(10.0, end_offset=0, now_s=0.0).lag == 0


def test_what_a_job_had_folded_when_it_came_counts_and_gives_no_more_time():
    lease = Lease(10.0, end_offset=5, now_s=0.0)
    lease.job_connected()
    lease.folded(3)
    assert (lease.lag, lease.job_healthy, lease.expires_s()) == (2, False, 10.0)
    lease.folded(5)
    assert (lease.lag, lease.job_healthy, lease.expires_s()) == (0, True, None)


def test_events_that_wait_run_it_out_from_the_first_of_them():
    lease = healthy()
    lease.appended(6, 3.0)
    lease.appended(9, 8.0)
    assert lease.expires_s() == 13.0
    assert lease.expiry_reason(12.9) is None
    assert lease.expiry_reason(13.0) == "4 events waited and no batch was completed for 10 s"


def test_every_completed_batch_starts_it_again():
    lease = healthy()
    lease.appended(9, 3.0)
    lease.batch_completed(7, 9.0)
    assert lease.expires_s() == 19.0
    lease.batch_completed(9, 18.0)
    assert lease.expires_s() is None


def test_a_batch_that_runs_again_in_life_after_life_does_not_start_it_again():
    lease = healthy()
    lease.appended(7, 2.0)
    lease.batch_completed(7, 3.0)
    lease.appended(9, 4.0)
    for life in range(1, 5):
        lease.job_gone(2.0 + 2.5 * life)
        lease.job_connected()
        lease.folded(5)
        lease.batch_completed(7, 3.0 + 2.5 * life)
    assert lease.expires_s() == 14.0
    assert lease.expiry_reason(14.0) == "2 events waited and no batch was completed for 10 s"


def test_an_absent_job_runs_it_out_even_when_nothing_waits():
    lease = healthy()
    lease.job_gone(4.0)
    lease.job_gone(6.0)
    assert not lease.job_healthy
    assert lease.expiry_reason(14.0) == "no job was connected for 10 s"
    lease.job_connected()
    assert lease.expires_s() is None


def test_offsets_never_go_back():
    lease = healthy()
    lease.appended(3, 2.0)
    lease.batch_completed(2, 3.0)
    assert (lease.completed, lease.lag) == (5, 0)


def test_what_waits_is_as_old_as_its_oldest_event():
    lease = Lease(10.0, end_offset=5, now_s=1.0)
    assert lease.oldest_waiting_s(3.0) == 2.0, "what was there before us counts from our start"
    lease.appended(7, 4.0)
    lease.appended(9, 6.0)
    lease.folded(5)
    assert lease.oldest_waiting_s(8.0) == 4.0
    lease.batch_completed(8, 8.0)
    assert lease.oldest_waiting_s(8.0) == 2.0
    lease.appended(9, 9.0)
    lease.batch_completed(9, 9.0)
    assert lease.oldest_waiting_s(10.0) == 0.0


ACTIONS = st.lists(
    st.tuples(
        st.floats(0.0, 5.0),
        st.one_of(
            st.just(("connected",)),
            st.just(("gone",)),
            st.tuples(st.just("appended"), st.integers(0, 20)),
            st.tuples(st.just("completed"), st.integers(0, 20)),
        ),
    )
)


@given(ACTIONS)
def test_it_has_a_reason_exactly_when_it_has_expired_and_health_means_no_expiry(actions):
    lease = Lease(3.0, 0, 0.0)
    now_s = 0.0
    for passed_s, (what, *argument) in actions:
        now_s += passed_s
        match what:
            case "connected":
                lease.job_connected()
            case "gone":
                lease.job_gone(now_s)
            case "appended":
                (end,) = argument
                lease.appended(end, now_s)
            case "completed":
                (end,) = argument
                lease.batch_completed(end, now_s)
        expires_s = lease.expires_s()
        assert (expires_s is None) == lease.job_healthy
        expired = expires_s is not None and now_s >= expires_s
        assert (lease.expiry_reason(now_s) is not None) == expired
