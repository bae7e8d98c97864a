"""The steps of a batch together: who hears what, and when."""

from __future__ import annotations

import orjson
import pytest

from state.partitions.ballots import Finding
from state.protocol_errors import ProtocolError
from streaming.explain.story import Explainer
from streaming.sinks import channel
from streaming.wire.apis import ApiKey
from streaming.zk.claim import claim_controller
from tests.fixtures.states import stored
from tests.fixtures.story import Story
from tests.fixtures.stub_brokers import leader_and_isr_states, metadata_states
from tests.fixtures.waiting import wait_for
from tests.integration.sinks import local_job
from tests.integration.sinks.stories import DELETIONS, Scenario, put_topic_of_others
from tests.integration.sinks.support import claimed, state_of, write_state

UM, LISR = ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR


def heard(world, broker):
    """(partition, leader, leader epoch, ISR) of topic t, in order, from both kinds of requests."""
    found = []
    for request in list(world.stubs[broker].received):
        api = request.header.api_key
        states = (
            [(topic, state) for topic, _, state in leader_and_isr_states(request)]
            if api is LISR
            else metadata_states(request)
            if api is UM
            else []
        )
        found += [
            (state["partition_index"], state["leader"], state["leader_epoch"], tuple(state["isr"]))
            for topic, state in states
            if topic == "t"
        ]
    return found


def begun(new_world, monkeypatch, write):
    """A world whose log has an election, topic t and what `write` adds; batches of any size."""
    monkeypatch.setattr(local_job, "BATCH_EVENTS", 100)

    def story(ports, version):
        told = Story()
        told.elect({id_: ports[id_] for id_ in (1, 2, 3)}, epoch_zk_version=version)
        told.create("t", [[1, 2, 3]])
        write(told, ports)
        return told

    return new_world(Scenario(story, put_topic_of_others))


def later(world, write):
    """Append what `write` tells to the log, as the front would."""
    told = Story()
    write(told)
    world.front.record(told.events)


def test_nothing_is_told_that_is_not_written(new_world, monkeypatch):
    world = begun(new_world, monkeypatch, lambda told, ports: None)
    job = world.start()
    job.run()
    write_state(world.session, "t", 0, (1, 0, [1, 2]))  # a leader's own change
    later(world, lambda told: told.unregister(1))  # lost: it expects another version
    later(world, lambda told: told.register({1: world.stubs[1].port}, add=200))  # writes nothing
    job.run()
    job.wait_told()
    assert state_of(world.session, "t", 0) == (1, 1, [1, 2], 2)
    told = {one for broker in (1, 2, 3) for one in heard(world, broker)}
    assert told == {(0, 1, 0, (1, 2, 3)), (0, 1, 1, (1, 2))}, "never that 2 leads: not written"
    (event,) = [orjson.loads(p) for kind, _, p in world.front.events() if kind.startswith("part")]
    assert event["cause"] == "conflict"


def test_what_came_of_a_decision_can_be_explained(new_world, monkeypatch):
    """Also that a write was lost, and what corrected it."""
    world = begun(new_world, monkeypatch, lambda told, ports: None)
    job = world.start()
    job.run()
    job.wait_told()
    write_state(world.session, "t", 0, (1, 0, [1, 2]))
    later(world, lambda told: told.unregister(1))
    job.run()
    job.wait_told()

    def confirmed():
        with Explainer(world.front.folders) as explainer:
            story = explainer.story("t", 0, 9)
        return (
            all(set(one.recipients) <= one.outcome.confirmed_ms.keys() for one in story) and story
        )

    created, lost, corrected = wait_for("every confirmation", confirmed)
    assert (created.lost, created.recipients) == (None, (1, 2, 3))
    assert created.outcome.delivered_ms.keys() == created.outcome.confirmed_ms.keys() == {1, 2, 3}
    assert all(
        created.outcome.delivered_ms[one] <= created.outcome.confirmed_ms[one] for one in (1, 2, 3)
    )
    assert (lost.lost, lost.change.row["leader"]) == ("the znode held something else", 2)
    assert (corrected.lost, corrected.event.kind) == (None, "partition_states_observed")
    written = (corrected.change.row["leader"], corrected.change.row["partition_epoch"])
    assert written == (2, state_of(world.session, "t", 0)[3])
    (ballot,) = corrected.reconstruction.ballots
    assert dict(ballot.candidates) == {
        1: Finding.NOT_REGISTERED,
        2: Finding.ELECTED,
        3: Finding.NOT_IN_SYNC,
    }


def test_a_replaced_controller_tells_brokers_nothing_and_the_front_what_happened(
    new_world, monkeypatch
):
    world = begun(new_world, monkeypatch, lambda told, ports: None)
    job = world.start()
    job.run()
    job.wait_told()
    before = {broker: heard(world, broker) for broker in (1, 2, 3)}
    claim_controller(world.session, 7, steal=True)
    later(world, lambda told: (told.unregister(3), told.alter("t", 0, [1, 2]), told.shut_down(2)))
    job.run()
    wait_for("the batch", lambda: len(world.front.heads("batch")) == 2)
    assert [head["fenced"] for head in world.front.heads("batch")] == [False, True]
    assert {broker: heard(world, broker) for broker in (1, 2, 3)} == before
    (said,) = world.front.heads("replies")[1:]
    assert {reply["error"] for reply in said["replies"]} == {ProtocolError.NOT_CONTROLLER}
    assert not any(job.sinks.brokers.queue_lengths().values())


def test_the_front_is_told_of_elections_and_of_queues(new_world, monkeypatch):
    world = begun(new_world, monkeypatch, lambda told, ports: None)
    job = world.start()
    job.run()
    said = wait_for("the batch", lambda: world.front.heads("batch"))[0]
    assert said["elections"] == {"new_partition_elected": 1}
    none = {"1": 0, "2": 0, "3": 0}
    wait_for(
        "word of empty queues",
        lambda: any(told["queue_lengths"] == none for told in world.front.heads("delivery")[-1:]),
    )


def test_the_front_knows_before_the_brokers(new_world, monkeypatch):
    world = begun(new_world, monkeypatch, lambda told, ports: None)
    job = world.start()
    job.run()
    names = job.points.names
    start = names.index("after zookeeper")
    assert names[start:][1:5] == ["before say", "after say", "before mark", "after mark"]
    wait_for("the batch", lambda: world.front.heads("batch"))
    types = [message.type for message in world.front.said]
    about_batches = [one for one in types if one != "delivery"]  # that comes when brokers answer
    assert about_batches == ["image", "decisions", "replies", "batch"]


def test_a_front_that_comes_back_gets_the_image_and_the_timers_of_now(new_world, monkeypatch):
    def write(told, ports):
        told.elected(1, 1, **{"auto.leader.rebalance.enable": True})
        told.register({1: ports[1]})
        told.write("resync_completed", topics=0)

    world = begun(new_world, monkeypatch, write)
    job = world.start()
    assert wait_for("the image", lambda: world.front.heads("image"))[0]["timers"] == {}
    job.run()
    world.front.hang_up()
    world.front.listen()
    again = wait_for("the image", lambda: world.front.heads("image")[1:])
    assert list(again[0]["timers"]) == ["leader_rebalance"]
    assert again[0]["end_offset"] == job.folded
    job.wait_told()


def test_storage_errors_come_back_as_events_and_are_decided_about(new_world, monkeypatch):
    world = begun(new_world, monkeypatch, lambda told, ports: None)
    world.stubs[1].errors = {("t", 0): ProtocolError.KAFKA_STORAGE_ERROR}
    job = world.start()
    job.run()
    wait_for("the event", lambda: world.front.events()[-1][0] == "leader_and_isr_answered")
    world.stubs[1].errors = {}
    job.run()
    job.wait_told()
    assert state_of(world.session, "t", 0) == (2, 1, [2, 3], 1)


def test_a_refused_topic_is_observed_again(new_world, monkeypatch):
    world = begun(new_world, monkeypatch, lambda told, ports: told.create("there", [[1]]))
    job = world.start()
    job.run()
    job.wait_told()
    (observed_again,) = wait_for("the request", lambda: world.front.heads("reobserve"))
    assert observed_again["topics"] == ["there"]
    assert world.front.events()[-1][:2] == ("topic_removed", "there")
    answers = wait_for("the answers", lambda: world.front.heads("replies"))[0]["replies"]
    assert [answer["error"] for answer in answers] == [
        ProtocolError.NONE,
        ProtocolError.TOPIC_ALREADY_EXISTS,
    ]


def test_outcomes_say_when_a_batch_was_written_and_confirmed(new_world, monkeypatch):
    from streaming.log.embedded import EmbeddedLogReader

    world = begun(new_world, monkeypatch, lambda told, ports: None)
    job = world.start()
    job.run()
    job.wait_told()
    job.close()
    with EmbeddedLogReader(job.folders.outcomes) as reader:
        records = list(reader.read(0, reader.end_offset()))
    bodies = [(one.kind, orjson.loads(one.payload)) for one in records]
    (persisted,) = [body for kind, body in bodies if kind == "persisted"]
    assert (persisted["end_offset"], persisted["conflicts"], persisted["fenced"]) == (4, 0, False)
    confirmed = {
        body["broker_id"]: body["end_offset"] for kind, body in bodies if kind == "confirmed"
    }
    assert confirmed == {1: 4, 2: 4, 3: 4}


def lose_machines(world, job):
    """Let the next job begin without any, and load what is in ZooKeeper."""
    job._checkpoint.commit(job.batch_id - 1, job.folded, {})
    ports = {id_: world.stubs[id_].port for id_ in (1, 2, 3)}
    leader, epoch, isr, zk_version = state_of(world.session, "t", 0)

    def load(told):
        told.elected(2, claimed(world.session))
        told.register(ports)
        told.observe(
            "t",
            [[1, 3]],
            states=[
                stored(leader, isr, leader_epoch=epoch, controller_epoch=1, zk_version=zk_version)
            ],
        )
        told.write("resync_completed", topics=1)

    later(world, load)


@pytest.mark.parametrize("without", ["nothing", "machines", "machines and marks"])
def test_what_a_broker_was_to_delete_and_forget_is_told_again_after_a_restart(
    new_world, monkeypatch, without
):
    """The image of the next job knows neither the replica nor the topic."""
    world = begun(new_world, monkeypatch, lambda told, ports: told.create("gone", [[1]]))
    world.session.ensure_path(DELETIONS)
    job = world.start()
    job.run()
    job.wait_told()
    missing = world.stubs[2]
    missing.silent = True
    missing.received.clear()

    def end(told):
        told.move("t", {0: [1, 3]})
        told.write("delete_topic_requested", "gone", request_id="r", topic="gone")
        told.replicas_deleted(1, "gone", [0])

    later(world, end)
    job.run()
    job.die()
    wait_for("the connection's end", lambda: not missing.connected)
    missing.silent = False
    missing.received.clear()
    if "machines" in without:
        lose_machines(world, job)
    if "marks" in without:
        job.folders.pending.unlink()

    job = world.start()
    job.run()
    job.wait_told()
    stops = [one for one in missing.received if one.header.api_key is ApiKey.STOP_REPLICA]
    assert [one.body["topic_states"] for one in stops] == [
        [
            {
                "topic_name": "t",
                "partition_states": [
                    {"partition_index": 0, "leader_epoch": 1, "delete_partition": True}
                ],
            }
        ]
    ]
    told = {
        (topic, state["partition_index"]): state["leader"]
        for request in missing.received
        if request.header.api_key is UM
        for topic, state in metadata_states(request)
    }
    assert told == {("t", 0): 1, ("gone", 0): -2}


def test_a_broker_that_is_registered_and_does_not_answer_is_told_everything_in_the_end(
    new_world, monkeypatch
):
    """Not each change since: its queue would grow without end."""
    monkeypatch.setattr(channel, "MAX_WAITING", 6)
    world = begun(new_world, monkeypatch, lambda told, ports: told.create("u", [[3, 1]]))
    world.session.ensure_path(DELETIONS)
    job = world.start()
    job.run()
    job.wait_told()
    world.stubs[3].received.clear()
    world.stubs[3].silent = True
    later(world, lambda told: told.write("delete_topic_requested", "u", request_id="d", topic="u"))
    job.run()
    isrs = [[1, 2], [1, 2, 3]] * 8
    for epoch, isr in enumerate(isrs):
        later(world, lambda told, isr=isr, at=epoch: told.alter("t", 0, isr, partition_epoch=at))
        job.run()
        assert job.sinks.brokers.queue_lengths()[3] < 16
    wait_for("what is in flight", lambda: world.stubs[3].received)
    world.stubs[3].received.clear()
    world.stubs[3].silent = False
    world.stubs.hang_up(3)
    job.wait_told()
    apis = world.stubs[3].apis()
    assert apis.count(ApiKey.STOP_REPLICA) == 1, "as it was queued"
    assert LISR in apis[apis.index(ApiKey.STOP_REPLICA) :]
    assert heard(world, 3)[-1][3] == (1, 2, 3)
    (gone,) = [
        state
        for request in world.stubs[3].of(UM)
        for topic, state in metadata_states(request)
        if topic == "u"
    ]
    assert gone["leader"] == -2
