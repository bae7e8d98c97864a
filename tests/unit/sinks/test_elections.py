"""Elections of a batch are counted by rule, and only those that were written."""

from __future__ import annotations

from streaming.sinks.elections import elections
from tests.unit.sinks.support import Job, lose


def led(assignment, **config):
    """A job whose topic `t` was just created."""
    job = Job()
    job.story.elect({1: 1, 2: 2, 3: 3}, **config)
    job.story.create("t", assignment)
    return job


def test_each_partition_counts_under_the_rule_that_elected_its_leader():
    job = led([[1, 2], [2, 1], [3, 1]])
    assert elections(job.decide()) == {"new_partition_elected": 3}
    job.story.unregister(2)
    assert elections(job.decide()) == {"offline_partition_elected": 1}
    job.story.shut_down(3)
    assert elections(job.decide()) == {"controlled_shutdown_elected": 1}


def test_a_leader_outside_the_isr_is_an_unclean_election():
    job = led([[1, 2]], **{"unclean.leader.election.enable": True})
    job.story.unregister(2)
    job.story.unregister(1)
    job.decide()
    job.story.register({2: 2}, add=200)
    assert elections(job.decide()) == {"unclean_elected": 1}


def test_what_is_told_to_a_broker_again_is_no_election():
    job = led([[1, 2]])
    job.decide()
    job.story.register({4: 4})
    assert elections(job.decide()) == {}


def test_a_write_that_did_not_happen_elected_nobody():
    job = led([[1, 2], [2, 1]])
    batch = job.decide()
    lose(batch, "t", 1)
    assert elections(batch) == {"new_partition_elected": 1}
