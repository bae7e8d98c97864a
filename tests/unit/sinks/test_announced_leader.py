"""What brokers are told of a topic whose leader this node is announced to be."""

from __future__ import annotations

from typing import Any

from streaming.internal_topics import GROUP_TOPIC
from streaming.sinks.plan import Planner
from streaming.wire.apis import ApiKey
from tests.fixtures.story import LISTENER, OURSELVES
from tests.fixtures.stub_brokers import leader_and_isr_states, metadata_states
from tests.unit.sinks.support import Job
from tests.unit.sinks.test_plan import decoded


def told(job: Job, batch: Any) -> tuple[dict[str, tuple[int, int]], dict[str, int], list[int]]:
    """What broker 1 hears: leader and epoch by topic, leader in metadata, addresses of leaders."""
    job.persist(batch)
    planner = Planner(job.image, LISTENER, announced_topic=GROUP_TOPIC)
    requests = [decoded(one) for one in planner.plan(batch.decisions)[1]]
    leaders, metadata, addresses = {}, {}, []
    for request in requests:
        if request.header.api_key is ApiKey.LEADER_AND_ISR:
            addresses += [one["broker_id"] for one in request.body["live_leaders"]]
            for topic, _, state in leader_and_isr_states(request):
                leaders[topic] = (state["leader"], state["leader_epoch"])
        else:
            metadata |= {topic: state["leader"] for topic, state in metadata_states(request)}
    return leaders, metadata, addresses


def test_a_new_topic_is_its_brokers_until_its_epochs_are_raised() -> None:
    job = Job()
    job.story.elect({1: 11, 2: 12, 3: 13})
    job.story.create(GROUP_TOPIC, [[1, 2]])
    job.story.create("t", [[1, 2]])
    leaders, metadata, _ = told(job, job.decide())
    assert leaders == {GROUP_TOPIC: (1, 0), "t": (1, 0)}
    assert metadata == {GROUP_TOPIC: 1, "t": 1}


def test_with_raised_epochs_we_lead_one_epoch_behind_zookeeper() -> None:
    job = Job()
    job.story.elect({1: 11, 2: 12, 3: 13})
    job.story.create(GROUP_TOPIC, [[1, 2]])
    job.story.create("t", [[1, 2]])
    told(job, job.decide())
    body = {"request_id": "r", "topic": GROUP_TOPIC}
    job.story.write("raise_leader_epochs_requested", GROUP_TOPIC, **body)
    leaders, metadata, addresses = told(job, job.decide())
    assert leaders == {GROUP_TOPIC: (OURSELVES, 1)}
    assert metadata == {GROUP_TOPIC: OURSELVES}
    assert addresses == [OURSELVES]
    row = job.image.rows_of(GROUP_TOPIC).start
    assert job.image.columns["leader"][row] == 1
    assert job.image.columns["leader_epoch"][row] == 2


def test_a_broker_that_returns_hears_the_same() -> None:
    job = Job()
    job.story.elect({1: 11, 2: 12, 3: 13})
    job.story.create(GROUP_TOPIC, [[2, 1]])
    told(job, job.decide())
    body = {"request_id": "r", "topic": GROUP_TOPIC}
    job.story.write("raise_leader_epochs_requested", GROUP_TOPIC, **body)
    told(job, job.decide())
    requests = Planner(job.image, LISTENER, announced_topic=GROUP_TOPIC).everything_for([1])[1]
    metadata, replicas = map(decoded, requests)
    assert [state["leader"] for _, state in metadata_states(metadata)] == [OURSELVES]
    ((_, _, state),) = leader_and_isr_states(replicas)
    assert (state["leader"], state["leader_epoch"]) == (OURSELVES, 1)
