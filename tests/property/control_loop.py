"""The job's whole flow in one thread: real machines and sinks between a ZooKeeper in memory and
model brokers.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import orjson

from state.reply_bodies import ControllerApi
from streaming.image.brokers import RegisteredBroker
from streaming.image.cluster_image import ClusterImage
from streaming.image.restore import paused_of
from streaming.log.api import LogRecord, NewRecord
from streaming.sinks.answer_events import deletion_events
from streaming.sinks.appender import SinkAppender
from streaming.sinks.batch_events import taken_back
from streaming.sinks.channel import Answer
from streaming.sinks.decided_so_far import DecidedSoFar
from streaming.sinks.doubts import Doubts
from streaming.sinks.pipeline import Pipeline
from streaming.sinks.plan import Plan, Planner, SharedRequest
from streaming.sinks.slow_batches import SlowBatches
from streaming.sinks.zookeeper import ZooKeeperSink
from streaming.wire.apis import ApiKey
from streaming.zk.write_limits import WriteLimits
from streaming.zk.znodes import epoch_bytes
from streaming.zk.znodes.controller import CONTROLLER_EPOCH_PATH
from streaming.zk.znodes.paths import (
    CONFIG_CHANGES_PATH,
    DELETE_TOPICS_PATH,
    TOPICS_PATH,
    partition_state_path,
    topic_path,
)
from tests.fixtures.observed_topics import states_now, topic_now
from tests.fixtures.story import LISTENER, Fold, Story
from tests.property.control_brokers import Broker, Place
from tests.property.control_zookeeper import MemorySession

BROKERS = (1, 2, 3, 4, 5)
TOPICS = {"t": [[1, 2, 3]], "u": [[3, 4, 5]]}
EPOCH_VERSION = 1


class ControlLoop:
    """A cluster with our controller, from its election on.

    log: events, of which those before `folded` are folded. asking: brokers with inter-broker
    protocol 2.7 or later, which ask for ISRs by AlterPartition (KIP-497); others write them to
    ZooKeeper. asked: the ISR that a leader asked for last, by place and leader epoch. unnoticed:
    places of ISRs that were written and of which no event tells yet.
    """

    def __init__(self, asking: Collection[int]) -> None:
        self.asking = asking
        self.store = _zookeeper()
        self.log, self.fold, self.folded = Story(), Fold(), 0
        self.brokers = {id_: Broker(id_) for id_ in BROKERS}
        self.image = ClusterImage()
        self.doubts = Doubts()
        self.batches = 0
        self.asked: dict[tuple[Place, int], list[int]] = {}
        self.unnoticed: list[Place] = []
        self._answers: list[NewRecord] = []
        self._pipeline = self._opened()
        self.log.elect({id_: 10 + id_ for id_ in BROKERS}, epoch_zk_version=EPOCH_VERSION)
        for topic, replicas in TOPICS.items():
            self.log.create(topic, replicas)
        self.run_batch()

    def live(self) -> list[Broker]:
        return [one for one in self.brokers.values() if one.alive]

    def is_settled(self) -> bool:
        return len(self.log.events) == self.folded and not self._answers

    def run_batch(self, end: int | None = None) -> None:
        """Fold what is in the log, up to an end, and carry out what is decided."""
        events = self.log.events[self.folded : end]
        if not events:
            return
        self.folded += len(events)
        self.batches += 1
        self._pipeline.carry_out(self.batches, self.fold.folded(events))

    def catch_up(self) -> None:
        """Let all that is under way arrive."""
        while self.unnoticed:
            self.notice(self.unnoticed.pop(0))
        self.take_answers()

    def take_answers(self, count: int | None = None) -> None:
        """Append what brokers answered, the oldest first."""
        self._append(self._answers[:count])
        del self._answers[:count]

    def notice(self, place: Place) -> None:
        """The observers see that the state of a partition changed, and read it."""
        topic, partition = place
        states = states_now(self.store, topic, [partition])
        if states[0] is not None:
            what: dict[str, Any] = {"partitions": [partition], "states": states}
            self.log.write(
                "partition_states_observed", topic, topic=topic, cause="notification", **what
            )

    # what the sinks reach

    def deliver(
        self, registered: Mapping[int, RegisteredBroker], plan: Plan, _end_offset: int
    ) -> Sequence[int]:
        """Have brokers take their requests; one that is another by now takes none."""
        for id_, requests in sorted(plan.items()):
            broker = self.brokers[id_]
            if broker.alive and registered[id_].epoch == broker.epoch:
                answers = [self.hand(broker, one) for one in requests]
                of_stops = [one for one in answers if one.request.api is ApiKey.STOP_REPLICA]
                self._answers += [event for one in of_stops for event in deletion_events(one)]
        return ()

    def hand(self, broker: Broker, request: SharedRequest) -> Answer:
        """Have a broker do as it is told, which is never to delete what nobody else may have."""
        for place in broker.would_delete(request):
            state = stored_state(self, place)
            needed = state is not None and (
                broker.id == state["leader"] or state["isr"] == [broker.id]
            )
            going = place[0] in self.store.children(DELETE_TOPICS_PATH)
            assert going or not needed, ("LOST: deletes what it has", broker, place, state)
        return broker.take(request)

    def append(self, events: list[NewRecord]) -> int:
        """Append what came of a batch (JobLink)."""
        return self._append(events)

    def send(self, head: dict[str, Any], _body: bytes = b"") -> None:
        """Take what the front is told (JobLink): replies go to brokers, topics are read again."""
        for reply in head.get("replies", ()):
            self._reply(reply)
        for topic in head["topics"] if head["type"] == "reobserve" else ():
            if topic_path(topic) not in self.store.nodes:
                self.log.write("topic_removed", topic, topic=topic, topic_id=None)
                continue
            now = topic_now(self.store, topic) | {"unwritable": topic in head["unwritable"]}
            self.log.write("topic_observed", topic, **now, observed_again=True)

    def _opened(self) -> Pipeline:
        return pipeline(self)

    def _append(self, events: list[NewRecord]) -> int:
        start = len(self.log.events)
        self.log.take([(one.kind, one.key, one.payload) for one in events])
        return start

    def _reply(self, reply: dict[str, Any]) -> None:
        request_id, error = reply["request_id"], reply["error"]
        if reply["api"] == ControllerApi.CONTROLLED_SHUTDOWN:
            self._leave(request_id, done=not error and not reply["remaining"])
        elif reply["api"] == ControllerApi.ALTER_PARTITION:
            for broker in self.live():
                for replica in broker.replicas.values():
                    if replica.asked == request_id:
                        replica.answered(error, {} if error else reply["partitions"][0])

    def _leave(self, request_id: str, *, done: bool) -> None:
        """A broker of which nothing is needed any more ends (KafkaServer.controlledShutdown)."""
        broker = self.brokers[int(request_id.removeprefix("shutdown-"))]
        if done and broker.leaving:
            broker.stop()
            self.log.unregister(broker.id)


def stored_state(loop: ControlLoop, place: Place) -> dict[str, Any] | None:
    node = loop.store.get(partition_state_path(*place))
    return None if node is None else orjson.loads(node.data) | {"version": node.version}


def _zookeeper() -> MemorySession:
    """What is in ZooKeeper when a controller is elected for the first time."""
    store = MemorySession()
    for root in (TOPICS_PATH, DELETE_TOPICS_PATH, CONFIG_CHANGES_PATH, "/config/topics"):
        store.put(root.rpartition("/")[0], b"")
        store.put(root, b"")
    store.put(CONTROLLER_EPOCH_PATH, epoch_bytes(1), EPOCH_VERSION)
    return store


def pipeline(loop: ControlLoop, unfolded: Sequence[LogRecord] = (), **kept: Any) -> Pipeline:
    """The real sinks; what is kept for a restart is not kept, unless it is given.

    unfolded: what came of batches that the job has still to fold.
    """
    link: Any = loop
    nothing: Any = SimpleNamespace(
        append=lambda _: None,
        folded=lambda _: None,
        checked=lambda: 0,
        mark=lambda *_: None,
        marked=lambda _: False,
        since=lambda _: None,
    )
    brokers: Any = SimpleNamespace(deliver=loop.deliver, queue_lengths=dict)
    session: Any = loop.store
    stopped = threading.Event().is_set
    paused = paused_of(loop.fold.machines())
    not_kept = dict.fromkeys(("decisions", "decision_log", "unconfirmed"), nothing)
    return Pipeline(
        **not_kept | kept,
        outcomes=nothing,
        zookeeper=ZooKeeperSink(lambda: session, WriteLimits(), stopped=stopped),
        brokers=brokers,
        link=link,
        decided=DecidedSoFar(loop.image, {}, paused=paused, without_term=False),
        planner=Planner(loop.image, LISTENER, announced_topic=None),
        retention=nothing,
        appender=SinkAppender(link, stopped, unfolded=unfolded),
        doubts=loop.doubts,
        slow=SlowBatches(threshold_ms=600_000),
        taken_back=taken_back(unfolded),
    )
