"""Counts of the image as the status shows them, and what the job's messages add up to."""

from __future__ import annotations

import asyncio

from state.event_kinds import EventKind
from streaming.front.controller_role import ControllerRole
from streaming.front.job_progress import JobProgress
from streaming.front.status import image_status, untold_brokers
from streaming.image import restore
from streaming.image.cluster_image import ClusterImage
from streaming.link.from_job import BatchCompleted
from tests.fixtures.states import stored
from tests.unit.front.front_figures import image_of, made_front, play_job
from tests.unit.front.loop_turns import pass_the_loop
from tests.unit.state.support import Controller

COUNTS = ("offline_partitions", "leaderless", "under_replicated", "imbalanced")


def counts(image):
    status = image_status(image)
    return tuple(status[name] for name in COUNTS)


def test_each_partition_counts_where_it_belongs():
    # (leader, ISR, replicas); brokers 1 and 2 are registered
    image = image_of([(1, [1, 2], [1, 2]), (2, [2], [1, 2]), (3, [3], [3, 1]), (-1, [1], [1, 2])])
    assert counts(image) == (2, 1, 3, 2)


def test_a_preferred_replica_that_is_added_counts_once_it_is_in_sync():
    rows = [(1, [1, 2], [3, 1, 2]), (1, [1, 2, 3], [3, 1, 2]), (2, [1, 2], [1, 2])]
    image = image_of(rows)
    image.columns["adding"][:2, 0] = True
    assert image_status(image)["imbalanced"] == 2


def test_a_partition_that_is_led_by_who_is_to_lead_no_more_counts_until_another_one_leads():
    rows = [(1, [1, 2], [1, 2]), (2, [1, 2], [1, 2]), (1, [1], [1])]
    image = image_of(rows)
    assert image_status(image)["imbalanced"] == 1
    status = image_status(image, [1])
    assert (status["imbalanced"], status["led_by_deprioritized"]) == (1, 2)
    assert image_status(image, [1, 2])["imbalanced"] == 1


def test_partitions_without_replicas_count_where_they_belong():
    # (leader, ISR, replicas): the lists of all, or of the first alone, are empty
    assert counts(image_of([(-1, [], []), (-1, [], [])])) == (2, 2, 0, 0)
    assert counts(image_of([(-1, [], []), (2, [2, 1], [1, 2])])) == (1, 1, 0, 1)


def test_brokers_that_nothing_can_be_told_to_are_shown():
    image = image_of([(1, [1, 2], [1, 2])])
    listener = image.brokers[1].node.endpoints[0].listener
    assert untold_brokers(image, listener) == []
    assert untold_brokers(image, "CONTROL") == sorted(image.brokers)
    assert untold_brokers(None, listener) is None


def test_it_is_shown_whether_shutdowns_may_be_refused(tmp_path):
    async def checks(*overrides):
        front, log = made_front(tmp_path, *overrides)
        with log:
            return front.status()["checks_shutdowns"]

    assert not asyncio.run(checks())
    assert asyncio.run(checks("controlled.shutdown.safety.check.enable=true"))


def test_an_image_without_partitions_counts_none_and_no_image_is_not_known():
    assert counts(ClusterImage()) == (0, 0, 0, 0)
    assert counts(None) == (None, None, None, None)


def test_a_topic_whose_deletion_has_started_counts_nowhere():
    controller = Controller()
    controller.topic("t", [[1, 2, 3]], topic_id="tttttttttttttttttttttg")
    controller.brokers(unregistered=[1, 2, 3])
    restored = restore.image_of([controller.slot, controller.cluster])
    assert image_status(restored)["offline_partitions"] == 1
    controller.happen("topic_deletion_requested", "t", topic="t")
    restored = restore.image_of([controller.slot, controller.cluster])
    assert image_status(restored)["offline_partitions"] == 0


def restored(controller: Controller) -> ClusterImage:
    """What a front has that was told by a job that was started again."""
    image = restore.image_of([controller.slot, controller.cluster])
    return ClusterImage.from_snapshot(image.snapshot())


def observe(controller: Controller, *states: list[object] | None) -> ClusterImage:
    """Partitions 0, 1, ... of topic t are read; return the image that is restored then."""
    body = {"topic": "t", "partitions": list(range(len(states))), "states": states}
    controller.happen("partition_states_observed", "t", cause="read", **body)
    return restored(controller)


def test_a_partition_whose_state_is_gone_is_offline_after_a_start_of_the_job_too():
    controller = Controller()
    controller.topic("t", [[1, 2], [2, 3]])
    for states, gone in (
        ((None,), 1),
        ((None, None), 2),
        ((None, stored(2, [2, 3], leader_epoch=4, zk_version=9)), 1),
    ):
        image = observe(controller, *states)
        assert counts(image) == (gone, gone, 0, 0)
        assert (image_status(image)["topics"], image_status(image)["partitions"]) == (1, 2)


def test_a_state_that_is_there_again_and_a_topic_that_goes_count_no_more():
    controller = Controller()
    controller.topic("t", [[1, 2], [2, 3]])
    whole = restored(controller)
    image = observe(controller, None, None)
    image.upsert({"topic": whole.topic_of_rows()[0], **whole.columns}, ["t"], [None])
    assert counts(image) == (0, 0, 0, 0)
    image = observe(controller, None, None)
    image.forget_topics(["t"])
    assert counts(image) == (0, 0, 0, 0)


def test_requests_of_tools_and_of_members_wait_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(ControllerRole, "is_controller", lambda role: True)

    async def scenario():
        front, log = made_front(tmp_path)
        with log:
            play_job(front)
            front._pending.ask(EventKind.DELETE_TOPIC_REQUESTED, "t", {"topic": "t"}, 20)
            assert front.status()["waiting_requests"] == 1
            front._groups._coordination.ask(EventKind.LEAVE_GROUP_REQUESTED, "g", {}, 20)
            assert front.status()["waiting_requests"] == 2
            await pass_the_loop()

    asyncio.run(scenario())


def test_batches_add_up():
    progress = JobProgress()
    elected = {"unclean_elected": 2}
    first = BatchCompleted(1, 4, decisions=3, conflicts=1, fenced=True, elections=elected)
    second = BatchCompleted(2, 5, decisions=1)
    progress.note_batch(first, 9)
    progress.note_batch(second, 10)
    assert progress.totals == {"batches": 2, "decisions": 4, "conflicts": 1, "fenced_batches": 1}
    assert progress.elections == {"unclean_elected": 2}
    assert (progress.batch, progress.batch_time_ms) == (second.figures(), 10)
