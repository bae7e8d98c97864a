"""The image out of the machines is the image that their decisions led to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from checkpoints.machine_format import decode_machine
from state.cluster.cluster import Cluster
from state.decisions import DecisionKind
from state.events import Event
from state.partitions.slot import Slot
from state.step import Machine
from streaming.image.cluster_image import ClusterImage
from streaming.image.restore import image_of, paused_of, timers_of
from streaming.link.from_job import Delivered
from streaming.sinks.batch import decided_batch
from streaming.sinks.decided_so_far import DecidedSoFar
from streaming.sinks.persisted import persisted
from tests.fixtures.states import stored
from tests.fixtures.story import Fold, Story
from tests.logs.group_intents import LOGS as GROUP_LOGS
from tests.logs.group_logs import Author
from tests.logs.state_logs import PLAUSIBLE_LOGS


def partitions(image: ClusterImage) -> dict:
    """Everything a reader may ask of each partition."""
    index, names = image.topic_of_rows() if len(image) else ([], [])
    found = {}
    for row, topic in enumerate(index):
        replicas = image.columns["replicas"][row].tolist()
        masks = {
            name: {
                broker
                for broker, held in zip(replicas, image.columns[name][row].tolist(), strict=True)
                if held
            }
            for name in ("adding", "removing")
        }
        found[names[topic], int(image.columns["partition"][row])] = {
            **masks,
            "replicas": [broker for broker in replicas if broker >= 0],
            "isr": [broker for broker in image.columns["isr"][row].tolist() if broker >= 0],
            **{
                name: int(image.columns[name][row])
                for name in ("leader", "leader_epoch", "partition_epoch", "recovery")
            },
        }
    return found


def without_state(machines: list[Machine]) -> set[tuple[str, int]]:
    """Partitions without a state znode. One that had it is told to nobody when it vanishes: the
    topic is about to be removed.
    """
    return {
        (slot.table.topics[topic].name, partition)
        for slot in machines
        if isinstance(slot, Slot)
        for topic, partition, has_state in zip(
            slot.table.rows.topic.tolist(),
            slot.table.rows.partition.tolist(),
            slot.table.rows.has_state.tolist(),
            strict=True,
        )
        if not has_state
    }


def decided_by(log: list[Event], cuts: list[int], slots: int) -> tuple[Fold, DecidedSoFar]:
    fold, decided = Fold(slots), DecidedSoFar(ClusterImage(), {}, paused=False, without_term=False)
    for start, end in zip([0, *cuts], [*cuts, len(log)], strict=True):
        if start < end:
            batch = decided_batch(1, fold.folded(log[start:end]))
            decided.fold(batch, persisted(batch))
    return fold, decided


def folded(log: list[Event], cuts: list[int], slots: int) -> tuple[Fold, ClusterImage]:
    fold, decided = decided_by(log, cuts, slots)
    return fold, decided.image


@given(log=PLAUSIBLE_LOGS, data=st.data())
def test_a_restored_image_is_the_one_that_was_lost(log: list[Event], data: st.DataObject) -> None:
    """While we are the controller. Between an election and the end of its load the machines hold
    half of the new view, and readers go on with the old one. A pause is known all the time.
    """
    cuts = sorted(data.draw(st.sets(st.integers(1, len(log)), max_size=4), label="cuts"))
    fold, decided = decided_by(log, cuts, data.draw(st.sampled_from([1, 3]), label="slots"))
    image, machines = decided.image, fold.machines()
    cluster = next(one for one in machines if isinstance(one, Cluster))
    restored = image_of(machines)
    assert paused_of(machines) == decided.paused
    if not cluster.authority.is_loaded:
        assert (len(restored), restored.brokers, restored.controller_epoch) == (0, {}, -1)
        return
    assert restored.brokers == image.brokers
    assert restored.controller_node == image.controller_node
    assert restored.controller_epoch == image.controller_epoch
    assert restored.epoch_zk_version == image.epoch_zk_version
    vanished = without_state(machines)
    seen = {at: row for at, row in partitions(image).items() if at not in vanished}
    assert partitions(restored) == seen
    ids = {topic: restored.topic_ids[topic] for topic, _ in partitions(restored)}
    assert ids == {topic: image.topic_ids[topic] for topic, _ in seen}


@given(author=GROUP_LOGS, data=st.data())
def test_a_timer_that_a_machine_has_armed_is_told(author: Author, data: st.DataObject) -> None:
    log = author.events
    cuts = sorted(data.draw(st.sets(st.integers(1, len(log)), max_size=4), label="cuts"))
    fold, decided = decided_by(log, cuts, 1)
    with decided.lock:
        told, _ = decided.message(Delivered({}))
    assert timers_of(fold.machines()).keys() <= told.timers.keys()


def test_offline_replicas_are_restored_too() -> None:
    story = Story()
    story.elect({1: 11, 2: 12, 3: 13})
    story.create("t", [[1, 2, 3], [3, 1, 2]])
    story.unregister(2)
    fold, image = folded(story.events, [], 2)
    restored = image_of(fold.machines())
    for name in ("replicas", "offline"):
        assert restored.columns[name].tolist() == image.columns[name].tolist()
    assert restored.columns["offline"].any()


def test_half_a_load_is_no_image() -> None:
    story = Story()
    story.elect({1: 11, 2: 12})
    story.create("t", [[1, 2]])
    story.elected(2, 2)
    story.register({1: 11, 2: 12})
    fold, before = folded(story.events, [], 2)
    assert before.topic_names() == ["t"]
    restored = image_of(fold.machines())
    assert (len(restored), restored.brokers, restored.controller_epoch) == (0, {}, -1)


def test_a_topic_whose_deletion_had_begun_is_gone_after_a_restart_in_a_pause() -> None:
    story = Story()
    story.elected(1, 1)
    story.write("controller_paused", reason="a look around")
    story.register({1: 11})
    for topic in ("t", "u"):
        story.observe(topic, [[1, 2]], states=[stored(-1, [2], leader_epoch=1, zk_version=1)])
    story.write("topic_deletion_requested", "t", topic="t")
    story.write("resync_completed", topics=2)
    fold, image = folded(story.events, [], 2)
    for one in (image, image_of(fold.machines())):
        assert (one.deleting, one.topic_names()) == ({"t"}, ["u"])


def test_nothing_folded_is_an_empty_image() -> None:
    image = image_of([])
    assert (len(image), image.brokers, image.controller_id) == (0, {}, -1)
    assert timers_of([]) == {}


def test_armed_timers_come_from_the_cluster_machine() -> None:
    story = Story()
    story.elect({1: 11}, **{"auto.leader.rebalance.enable": True})
    fold = Fold(2)
    (armed,) = decided_batch(1, fold.folded(story.events)).of_kind(DecisionKind.ARM_TIMER)
    machines = [decode_machine(data) for data in fold.states.values()]
    assert timers_of(machines) == {armed.content["timer"]: armed.content["deadline_ms"]}
