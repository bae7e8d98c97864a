"""Which requests a batch means for each broker, decoded again from their bytes."""

from __future__ import annotations

import pytest

from state.decisions import DecisionKind
from streaming.image.brokers import endpoint_on
from streaming.wire.apis import ApiKey
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.wire.partition_rows import BrokerNode
from streaming.wire.requests import decode_request, encode_request_header
from tests.fixtures.story import LISTENER, OURSELVES
from tests.fixtures.stub_brokers import NEWEST, leader_and_isr_states, metadata_states
from tests.unit.sinks.support import Job, lose, planner_of

UM, LISR, STOP = ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA


def decoded(request, version=None, broker_epoch=1):
    version = NEWEST[request.api] if version is None else version
    head = encode_request_header(request.api, version, 1, "test")
    body = b"".join(request.encode(version).parts(broker_epoch))
    return decode_request(head + body, {request.api})


class Plans:
    """A job and the plan of each of its batches."""

    def __init__(self, **config) -> None:
        self.job = Job()
        self.story = self.job.story
        self.story.elect({1: 11, 2: 12, 3: 13}, **config)

    def plan(self, batch=None, listener=LISTENER):
        batch = self.job.decide() if batch is None else batch
        self.job.persist(batch)
        planned = planner_of(self.job.image, listener).plan(batch.decisions)
        return {id_: [decoded(one) for one in requests] for id_, requests in planned.items()}


def apis(requests):
    return [request.header.api_key for request in requests]


def led(requests):
    """(topic, partition): (leader, epoch, is new) of the one LeaderAndIsr."""
    (request,) = [one for one in requests if one.header.api_key is LISR]
    return {
        (topic, state["partition_index"]): (state["leader"], state["leader_epoch"], state["is_new"])
        for topic, _, state in leader_and_isr_states(request)
    }


def announced(request):
    return {
        (topic, state["partition_index"]): state["leader"]
        for topic, state in metadata_states(request)
    }


def live(request):
    return sorted(broker["id"] for broker in request.body["live_brokers"])


def test_an_election_tells_every_broker_everything_and_our_own_address():
    plans = Plans()
    plan = plans.plan()
    assert plan.keys() == {1, 2, 3}
    for requests in plan.values():
        assert apis(requests) == [UM]
        assert live(requests[0]) == [1, 2, 3, OURSELVES]
        (ours,) = [b for b in requests[0].body["live_brokers"] if b["id"] == OURSELVES]
        assert {end["listener"] for end in ours["endpoints"]} == {"CLIENT", LISTENER}
        assert requests[0].body["controller_id"] == OURSELVES
        assert requests[0].body["controller_epoch"] == 1


def test_replicas_hear_of_leaders_before_everybody_hears_of_metadata():
    plans = Plans()
    plans.plan()
    plans.story.create("t", [[1, 2], [2, 1]])
    plan = plans.plan()
    assert {id_: apis(requests) for id_, requests in plan.items()} == {
        1: [LISR, UM],
        2: [LISR, UM],
        3: [UM],
    }
    assert led(plan[1]) == {("t", 0): (1, 0, True), ("t", 1): (2, 0, True)}
    assert announced(plan[3][0]) == {("t", 0): 1, ("t", 1): 2}
    leaders = plan[1][0].body["live_leaders"]
    assert [(one["broker_id"], one["port"]) for one in leaders] == [(1, 11), (2, 12)]


def test_live_brokers_come_first_and_a_new_broker_gets_everything():
    plans = Plans()
    plans.story.create("t", [[1, 2], [2, 4]])
    plans.story.create("u", [[3]])
    plans.plan()
    plans.story.register({4: 14})
    plan = plans.plan()
    assert apis(plan[1]) == [UM, UM]
    assert live(plan[1][0]) == [1, 2, 3, 4, OURSELVES]
    assert metadata_states(plan[1][0]) == []
    assert announced(plan[1][1]) == {("t", 1): 2}, "its other replica is not offline any more"
    assert apis(plan[4]) == [UM, LISR]
    assert announced(plan[4][0]) == {("t", 0): 1, ("t", 1): 2, ("u", 0): 3}
    assert led(plan[4]) == {("t", 1): (2, 0, False)}


def test_a_returning_broker_gets_its_replicas_the_others_what_changed():
    plans = Plans()
    plans.story.create("t", [[1, 2], [2, 3]])
    plans.plan()
    plans.story.unregister(1)
    plan = plans.plan()
    assert plan.keys() == {2, 3}
    assert apis(plan[2]) == [UM, LISR, UM]
    assert led(plan[2]) == {("t", 0): (2, 1, False)}
    assert apis(plan[3]) == [UM, UM]
    plans.story.register({1: 21}, add=200)
    plan = plans.plan()
    assert apis(plan[1]) == [UM, LISR]
    assert announced(plan[1][0]) == {("t", 0): 2, ("t", 1): 2}
    assert led(plan[1]) == {("t", 0): (2, 1, False)}
    assert apis(plan[2]) == [UM, UM], "its own replicas did not change"
    assert announced(plan[2][1]) == {("t", 0): 2}


def test_of_several_changes_in_a_batch_the_last_is_told():
    plans = Plans()
    plans.story.create("t", [[1, 2, 3]])
    plans.story.unregister(1)
    plans.story.unregister(2)
    plan = plans.plan()
    assert plan.keys() == {3}
    assert led(plan[3]) == {("t", 0): (3, 2, True)}
    assert live(plan[3][0]) == [3, OURSELVES]


def test_a_controlled_shutdown_stops_the_followers_last():
    plans = Plans()
    plans.story.create("t", [[1, 2], [2, 1]])
    plans.plan()
    plans.story.shut_down(1)
    plan = plans.plan()
    assert apis(plan[1]) == [LISR, UM, UM, STOP]
    assert led(plan[1]) == {("t", 0): (2, 1, False)}, "it follows what it led before"
    (topic,) = plan[1][3].body["topic_states"]
    (stopped,) = topic["partition_states"]
    assert (topic["topic_name"], stopped["partition_index"]) == ("t", 1)
    assert stopped["delete_partition"] is False
    assert stopped["leader_epoch"] == 1
    assert apis(plan[2]) == [LISR, UM, LISR, UM]
    assert led(plan[2][:2]) == {("t", 0): (2, 1, False)}
    assert led(plan[2][2:]) == {("t", 1): (2, 1, False)}


def test_partitions_with_another_leader_come_ahead_of_the_others():
    """A broker takes about a millisecond for each partition."""
    plans = Plans()
    plans.story.create("t", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    plans.plan()
    plans.story.unregister(1)
    plan = plans.plan()
    for broker in (2, 3):
        assert apis(plan[broker]) == [UM, LISR, UM, LISR, UM]
        assert led(plan[broker][:3]) == {("t", 0): (2, 1, False)}
        assert announced(plan[broker][2]) == {("t", 0): 2}
        assert led(plan[broker][3:]) == {("t", 1): (2, 1, False), ("t", 2): (3, 1, False)}
        assert announced(plan[broker][4]) == {("t", 1): 2, ("t", 2): 3}


def test_another_leader_is_one_that_brokers_did_not_know_before_the_batch():
    """The second event changes the ISR alone."""
    plans = Plans()
    plans.story.create("t", [[1, 2, 3], [2, 1, 3]])
    plans.plan()
    plans.story.unregister(1)
    plans.story.unregister(3)
    plan = plans.plan()
    assert apis(plan[2]) == [UM, LISR, UM, LISR, UM]
    assert led(plan[2][:3]) == {("t", 0): (2, 2, False)}
    assert led(plan[2][3:]) == {("t", 1): (2, 2, False)}


def test_what_was_lost_is_neither_led_nor_announced_nor_stopped():
    plans = Plans()
    plans.story.create("t", [[1, 2], [2, 1]])
    plans.plan()
    plans.story.shut_down(1)
    batch = plans.job.decide()
    lose(batch, "t", 1)
    (stop,) = batch.of_kind(DecisionKind.STOP_REPLICAS)
    stop.lost[:] = True
    plan = plans.plan(batch)
    assert led(plan[2]) == {("t", 0): (2, 1, False)}
    assert apis(plan[1]) == [LISR, UM]
    assert announced(plan[1][1]) == {("t", 0): 2}


def test_stops_that_delete_go_apart_from_those_that_do_not():
    plans = Plans()
    plans.story.create("t", [[1, 2], [2, 1], [2, 1]])
    plans.plan()
    plans.story.shut_down(1)
    batch = plans.job.decide()
    (stop,) = batch.of_kind(DecisionKind.STOP_REPLICAS)
    stop.columns["delete"] = stop.columns["partition"] == 2
    plans.job.persist(batch)
    planned = planner_of(plans.job.image).plan(batch.decisions)
    stops = [request for request in planned[1] if request.api is STOP]
    for version in range(NEWEST[STOP] + 1):
        kept, deleted = (decoded(request, version) for request in stops)
        if version < 3:
            assert (kept.body["delete_partitions"], deleted.body["delete_partitions"]) == (
                False,
                True,
            )


def test_a_topic_made_anew_with_fewer_partitions_is_told_as_it_is():
    plans = Plans()
    plans.plan()
    plans.story.create("t", [[1], [1], [1]], topic_id="xVg7K6qyTvmxpuD7RnqU_w")
    plans.story.create("u", [[2]])
    plans.story.write("topic_removed", "t", topic="t", topic_id="xVg7K6qyTvmxpuD7RnqU_w")
    plans.story.create("t", [[1]], topic_id="AAAAAAAAAAAAAAAAAAAAAQ")
    plan = plans.plan()
    assert announced(plan[3][0]) == {("t", 0): 1, ("u", 0): 2}
    ((_, topic_id, _),) = leader_and_isr_states(plan[1][0])
    assert topic_id.bytes == bytes(15) + b"\x01"


def test_of_a_topic_that_is_gone_nothing_is_told():
    plans = Plans()
    plans.plan()
    plans.story.create("t", [[1]])
    plans.story.remove("t", [[1]])
    assert plans.plan() == {}


def test_a_broker_without_the_listener_is_no_live_leader():
    plans = Plans()
    plans.plan()
    plans.story.create("t", [[1, 2]])
    plan = plans.plan(listener="ELSEWHERE")
    assert plan[1][0].body["live_leaders"] == []


def test_the_listener_is_the_named_one_or_the_first():
    plain = SecurityProtocol.PLAINTEXT
    ends = (
        Endpoint(listener="CLIENT", host="a", port=1, security_protocol=plain),
        Endpoint(listener="INTERNAL", host="b", port=2, security_protocol=plain),
    )
    node = BrokerNode(5, None, ends)
    assert endpoint_on(node, "INTERNAL") is ends[1]
    assert endpoint_on(node, "") is None  # which of the two is nobody's guess
    assert endpoint_on(BrokerNode(4, None, ends[:1]), "") is ends[0]
    assert endpoint_on(node, "OTHER") is None
    assert endpoint_on(BrokerNode(5, None, ()), "") is None


def test_everything_for_a_broker_is_metadata_and_then_its_replicas():
    plans = Plans()
    plans.story.create("t", [[1, 2], [2, 3]])
    plans.plan()
    planner = planner_of(plans.job.image)
    everything = planner.everything_for([1, 9])
    metadata, replicas = (decoded(one) for one in everything[1])
    assert announced(metadata) == {("t", 0): 1, ("t", 1): 2}
    assert led([replicas]) == {("t", 0): (1, 0, False)}
    assert everything[9] == everything[1][:1], "one request, encoded once"


def test_a_request_is_encoded_once_per_version_and_addressed_by_epoch():
    plans = Plans()
    plans.story.create("t", [[1]])
    batch = plans.job.decide()
    plans.job.persist(batch)
    planned = planner_of(plans.job.image).plan(batch.decisions)
    shared = planned[2][-1]
    assert shared is planned[3][-1]
    assert shared.encode(8) is shared.encode(8)
    assert shared.encode(8) is not shared.encode(7)
    assert decoded(shared, broker_epoch=77).body["broker_epoch"] == 77


@pytest.mark.parametrize("api", [UM, LISR])
def test_every_version_says_the_same(api):
    plans = Plans()
    plans.story.create("t", [[1, 2]])
    batch = plans.job.decide()
    plans.job.persist(batch)
    (request,) = [
        one
        for one in planner_of(plans.job.image).plan(batch.decisions)[1]
        if one.api is api and len(one.rows)
    ][-1:]
    for version in range(NEWEST[api] + 1):
        body = decoded(request, version).body
        states = body["ungrouped_partition_states"] or [
            state for topic in body["topic_states"] for state in topic["partition_states"]
        ]
        assert [(state["leader"], state["isr"]) for state in states] == [(1, [1, 2])]


def moved_away(plans):
    """t-0 goes from 1 and 2 to 1 and 3: broker 2 is to delete its replica."""
    plans.story.create("t", [[1, 2]])
    plans.story.move("t", {0: [1, 3]})
    plans.story.alter("t", 0, [1, 2, 3], leader_epoch=1, partition_epoch=1)


def test_a_replica_that_goes_and_comes_back_in_one_batch_is_not_deleted():
    plans = Plans()
    plans.plan()
    moved_away(plans)
    assert STOP in apis(plans.plan()[2])

    plans = Plans()
    plans.plan()
    moved_away(plans)
    plans.story.move("t", {0: [1, 2]})
    plan = plans.plan()
    assert apis(plan[2]) == [LISR, UM]
    assert plan[2][0].body["topic_states"][0]["partition_states"][0]["replicas"] == [1, 2, 3]


def test_a_broker_that_comes_back_in_the_batch_in_which_it_went_is_not_stopped():
    plans = Plans()
    plans.plan()
    plans.story.create("t", [[1, 2]])
    plans.plan()
    plans.story.unregister(2)
    plans.story.register({2: 12}, add=200)
    plan = plans.plan()
    assert STOP not in apis(plan[2])
    assert LISR in apis(plan[2])


def test_stops_of_a_batch_go_in_one_request():
    plans = Plans()
    plans.story.create("t", [[1, 2], [1, 2]])
    plans.story.create("u", [[1, 2]])
    plans.plan()
    plans.story.move("t", {0: [3], 1: [3]})
    plans.story.move("u", {0: [3]})
    plans.plan()
    for topic, partition in (("u", 0), ("t", 1), ("t", 0)):
        plans.story.alter(topic, partition, [1, 2, 3], leader_epoch=1, partition_epoch=1)
    plan = plans.plan()
    for broker in (1, 2):
        (request,) = [one for one in plan[broker] if one.header.api_key is STOP]
        stopped = {
            (topic["topic_name"], state["partition_index"], state["delete_partition"])
            for topic in request.body["topic_states"]
            for state in topic["partition_states"]
        }
        assert stopped == {("t", 0, True), ("t", 1, True), ("u", 0, True)}
    assert STOP not in apis(plan[3])
