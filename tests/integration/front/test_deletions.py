"""Topics named under /admin/delete_topics become events, whenever they are named."""

from __future__ import annotations

from streaming.zk.ops import Create, Delete
from tests.integration.front.harness import put_broker, put_topic

MARKS = "/admin/delete_topics"
TOPIC_ID = "xVg7K6qyTvmxpuD7RnqU_w"


def active(zk_session, start_with_job):
    put_broker(zk_session, 1)
    put_topic(zk_session, "t", [[1]], topic_id=TOPIC_ID)
    front = start_with_job()
    front.wait_role("active")
    return front


def test_names_are_appended_once_with_the_topic_they_mean(zk_session, start_with_job):
    front = active(zk_session, start_with_job)
    zk_session.create(f"{MARKS}/t", b"")
    front.wait_events("topic_deletion_requested", 1)
    front.wait_status("a topic to delete", lambda status: status["topics_to_delete"] == 1)
    zk_session.create(f"{MARKS}/unknown", b"")
    assert front.wait_events("topic_deletion_requested", 2) == [
        {"topic": "t", "topic_id": TOPIC_ID},
        {"topic": "unknown", "topic_id": None},
    ]


def test_a_name_that_went_and_came_back_is_appended_again(zk_session, start_with_job):
    front = active(zk_session, start_with_job)
    zk_session.create(f"{MARKS}/t", b"")
    front.wait_events("topic_deletion_requested", 1)
    zk_session.multi([Delete(f"{MARKS}/t"), Create(f"{MARKS}/t")])
    front.wait_events("topic_deletion_requested", 2)


def test_a_name_that_somebody_takes_away_is_withdrawn(zk_session, start_with_job):
    front = active(zk_session, start_with_job)
    zk_session.create(f"{MARKS}/t", b"")
    front.wait_events("topic_deletion_requested", 1)
    zk_session.multi([Delete(f"{MARKS}/t")])
    assert front.wait_events("topic_deletion_withdrawn", 1) == [
        {"topic": "t", "topic_id": TOPIC_ID}
    ]


def test_a_name_that_went_is_withdrawn_again_behind_a_topic_that_is_read_again(
    zk_session, start_front, start_job
):
    put_broker(zk_session, 1)
    put_topic(zk_session, "t", [[1]], topic_id=TOPIC_ID)
    front = start_front()
    front.wait_listening()
    job = start_job()
    front.wait_role("active")
    zk_session.create(f"{MARKS}/t", b"")
    front.wait_events("topic_deletion_requested", 1)
    zk_session.multi([Delete(f"{MARKS}/t")])
    front.wait_events("topic_deletion_withdrawn", 1)
    job.say({"type": "reobserve", "topics": ["t"]})
    assert (
        front.wait_events("topic_deletion_withdrawn", 2)
        == [{"topic": "t", "topic_id": TOPIC_ID}] * 2
    )
    last = [kind for kind, key, _ in front.events() if key == "t"][-2:]
    assert last == ["topic_observed", "topic_deletion_withdrawn"]
    zk_session.create(f"{MARKS}/t", b"")
    front.wait_events("topic_deletion_requested", 2)
    job.say({"type": "reobserve", "topics": ["t"]})
    front.wait_events("topic_observed", 3)
    zk_session.create(f"{MARKS}/unknown", b"")
    front.wait_events("topic_deletion_requested", 3)
    assert len(front.of_kind("topic_deletion_withdrawn")) == 2, "it is named again"


def test_a_topic_that_is_created_and_named_at_once_is_observed_first(zk_session, start_with_job):
    front = active(zk_session, start_with_job)
    put_topic(zk_session, "u", [[1]], topic_id=TOPIC_ID[:-1] + "g", states=False)
    zk_session.create(f"{MARKS}/u", b"")
    [marked] = front.wait_events("topic_deletion_requested", 1)
    assert marked == {"topic": "u", "topic_id": TOPIC_ID[:-1] + "g"}
    of_topic = [kind for kind, key, _ in front.events() if key == "u"]
    assert of_topic == ["topic_observed", "topic_deletion_requested"]


def test_names_that_wait_for_a_controller_are_part_of_the_load(zk_session, start_with_job):
    zk_session.ensure_path(f"{MARKS}/t")
    front = active(zk_session, start_with_job)
    kinds = [kind for kind, _, _ in front.events()]
    assert kinds.index("topic_observed") < kinds.index("topic_deletion_requested")
    assert kinds.index("topic_deletion_requested") < kinds.index("resync_completed")
