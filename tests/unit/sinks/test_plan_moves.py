"""Which replicas brokers are told are new, while partitions move to them."""

from __future__ import annotations

import pytest

from tests.unit.sinks.test_plan import Plans, led


def test_a_move_that_is_taken_back_in_its_batch_makes_no_replica_new():
    """A replica that is told so is created empty where its disk has failed."""
    plans = Plans()
    plans.story.create("t", [[1, 2]])
    plans.plan()
    plans.story.move("t", {0: [1, 3]})
    plans.story.move("t", {0: None})
    plan = plans.plan()
    assert {led(plan[id_])["t", 0][2] for id_ in (1, 2)} == {False}


def test_a_move_that_goes_on_in_its_batch_makes_only_the_replica_that_comes_new():
    plans = Plans()
    plans.story.create("t", [[1, 2]])
    plans.plan()
    plans.story.move("t", {0: [1, 3]})
    plans.story.unregister(2)
    plan = plans.plan()
    assert {id_: led(plan[id_])["t", 0][2] for id_ in (1, 3)} == {1: False, 3: True}


def test_a_target_that_starts_again_is_not_new_beside_one_that_still_comes():
    plans = Plans()
    plans.story.register({4: 14})
    plans.story.create("t", [[1, 2]])
    plans.story.move("t", {0: [3, 4]})
    plans.plan()
    plans.story.unregister(4)
    plans.story.register({4: 14}, add=200)
    plan = plans.plan()
    assert {id_: led(plan[id_])["t", 0][2] for id_ in (3, 4)} == {3: False, 4: False}


def test_a_replica_in_sync_is_not_new_whatever_else_its_batch_says():
    plans = Plans()
    plans.story.create("t", [[1]])
    plans.story.move("t", {0: [2, 3]})
    plans.plan()
    plans.story.alter("t", 0, [1, 2], leader_epoch=1, partition_epoch=1)
    plans.story.move("t", {0: [3, 2]})
    for id_ in (1, 2):
        plans.story.unregister(id_)
    plans.story.register({2: 22}, add=200)
    plan = plans.plan()
    assert led(plan[2])["t", 0] == (2, 5, False)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("order", [(4, 2), (2, 4)])
@pytest.mark.parametrize("targets", [[1, 2, 4], [1, 2, 4, 3]])
def test_a_target_that_starts_again_is_not_new_wherever_batches_are_cut(targets, order, together):
    plans = Plans()
    plans.story.register({4: 14})
    plans.story.create("t", [[1, 2]])
    plans.story.move("t", {0: targets})
    plans.plan()
    for id_ in (4, 2):
        plans.story.unregister(id_)
        plans.plan()
    told = []
    for id_ in order:
        plans.story.register({id_: 10 + id_}, add=200)
        if not together or id_ == order[-1]:
            told.append(plans.plan())
    assert [led(plan[4])["t", 0][2] for plan in told if 4 in plan] in ([False], [False] * 2)


def test_a_target_that_bounces_is_not_new_though_its_batch_tells_it_of_another_start():
    plans = Plans()
    plans.story.register({4: 14})
    plans.story.create("t", [[1, 2]])
    plans.story.move("t", {0: [1, 2, 4]})
    plans.plan()
    plans.story.register({2: 12}, add=200, how="bounced")
    plans.story.register({4: 14}, add=200, how="bounced")
    assert not led(plans.plan()[4])["t", 0][2]


@pytest.mark.parametrize("together", [False, True])
def test_a_target_that_was_away_is_new_as_it_starts_wherever_batches_are_cut(together):
    """It has several disks, and one of them failed before: no replica is there yet."""
    plans = Plans()
    plans.story.create("t", [[1, 2]])
    plans.plan()
    plans.story.move("t", {0: [1, 2, 4]}, request_id=None)
    if not together:
        plans.plan()
    plans.story.register({4: 14})
    assert led(plans.plan()[4])["t", 0][2]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("how", ["registered", "bounced"])
@pytest.mark.parametrize("order", [(4, 5), (5, 4)])
def test_a_target_that_starts_again_is_not_new_beside_one_that_was_away(order, how, together):
    """Broker 4 may have come back with a failed disk, on which its replica is."""
    plans = Plans()
    plans.story.register({4: 14})
    plans.story.create("t", [[1, 2]])
    plans.story.move("t", {0: [1, 2, 4, 5]}, request_id=None)
    plans.plan()
    if how == "registered":
        plans.story.unregister(4)
        plans.plan()
    told = {}
    for count, id_ in enumerate(order, start=1):
        plans.story.register({id_: 20 + id_}, add=200, how=how if id_ == 4 else "registered")
        if not together or count == len(order):
            plan = plans.plan()
            told = {one: led(plan[one])["t", 0][2] for one in order[:count]} | told
    assert told == {4: False, 5: True}
