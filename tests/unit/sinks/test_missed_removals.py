"""What is found in the decision log for a broker that may have missed it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from state.decisions import DecisionKind
from state.matrix import NONE
from streaming.image.restore import image_of
from streaming.log.api import LogRecord
from streaming.log.decision_writer import IdempotentLogWriter, IdentifiedRecord, RecordId
from streaming.log.embedded import CorruptLog, EmbeddedLogReader, EmbeddedLogWriter
from streaming.sinks.missed_removals import missed_removals, removes
from streaming.sinks.stored_topics import StoredTopic, StoredTopics, read_topics
from streaming.zk.znodes import TopicZNode, partition_state_bytes, topic_bytes
from streaming.zk.znodes.paths import partition_state_path, topic_path
from tests.property.control_zookeeper import MemorySession
from tests.unit.sinks.support import Job


class Logged(Job):
    """A job whose decisions are in a log. stored: what can be read of topics in ZooKeeper."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.writer = EmbeddedLogWriter(path)
        self.reader = EmbeddedLogReader(path)
        self.log = IdempotentLogWriter(self.writer, self.reader)
        self.story.elect({1: 11, 2: 12, 3: 13})
        self.stored: dict[str, StoredTopic | None] = {}
        self.asked: list[str] = []

    def go_on(self) -> int:
        """Fold, log and persist what was written; return the first event after it."""
        batch = self.persist(self.decide())
        self.log.append(
            [
                IdentifiedRecord(
                    RecordId(one.offset, one.merged.ordinal), one.kind, one.merged.body
                )
                for one in batch.decisions
            ]
        )
        return len(self.story.events)

    def missed(self, since: int, until: int = 1_000) -> list[tuple[DecisionKind, list[int]]]:
        """The kind of each decision that is found, and which of its rows hold."""
        found = missed_removals(self.reader, [range(since, until)], self.image, self.read)
        return [(one.kind, (~one.lost).nonzero()[0].tolist()) for one in found]

    def read(self, names: Sequence[str]) -> StoredTopics:
        self.asked += names
        return {name: self.stored[name] for name in names if name in self.stored}

    def end_move(self) -> int:
        """Move t-0 from 1 and 2 to 1 and 3, so that 2 is to delete it; return the last event."""
        self.story.move("t", {0: [1, 3]})
        return self.story.alter("t", 0, [1, 2, 3], leader_epoch=1, partition_epoch=1)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Logged]:
    job = Logged(tmp_path / "decisions")
    job.story.create("t", [[1, 2]])
    job.story.create("u", [[1, 2], [2, 1]])
    job.go_on()
    yield job
    job.reader.close()
    job.writer.close()


def of_t(
    replicas: list[int], *, leader: int, isr: list[int], topic_id: str | None = None
) -> StoredTopic:
    return StoredTopic(TopicZNode({0: replicas}, topic_id), {0: (leader, isr)})


def test_a_replica_that_was_to_be_deleted_is_found(job: Logged) -> None:
    ended = job.end_move()
    job.go_on()
    assert job.missed(0) == job.missed(ended) == [(DecisionKind.STOP_REPLICAS, [0])]
    assert job.missed(ended + 1) == job.missed(0, ended) == []


def test_what_is_said_to_remove_something_is_what_is_found(job: Logged) -> None:
    ended = job.end_move()
    asked = job.story.write("delete_topic_requested", "u", request_id="r", topic="u")
    job.story.shut_down(1)
    removing = {one.offset for one in job.decide().decisions if removes(one)}
    assert removing == {ended, asked}


def test_a_replica_that_is_assigned_again_is_there_to_stay(job: Logged) -> None:
    job.end_move()
    job.go_on()
    job.story.move("t", {0: [1, 3, 2]})
    job.go_on()
    assert job.missed(0) == []


@pytest.mark.parametrize(
    ("leader", "isr", "rows"),
    [
        pytest.param(2, [2], [], id="nobody else has the data"),
        pytest.param(2, [2, 1], [], id="it leads until another one is elected"),
        pytest.param(-1, [2], [], id="it led last"),
        pytest.param(1, [1], [0], id="others have taken over"),
    ],
)
def test_a_replica_that_is_needed_by_the_stored_state_is_left(
    job: Logged, leader: int, isr: list[int], rows: list[int]
) -> None:
    ended = job.end_move()
    job.go_on()
    rows_of_t = job.image.rows_of("t")
    job.image.columns["leader"][rows_of_t] = leader
    job.image.columns["isr"][rows_of_t] = [*isr, NONE][:2]
    assert job.missed(ended) == [(DecisionKind.STOP_REPLICAS, rows)] * bool(rows)


def test_stops_that_delete_nothing_are_not_repeated(job: Logged) -> None:
    job.story.shut_down(2)
    job.go_on()
    assert job.missed(0) == []


def test_a_topic_that_is_gone_is_found_and_one_that_is_not_yet_gone_is_not(job: Logged) -> None:
    asked = job.story.write("delete_topic_requested", "u", request_id="r", topic="u")
    job.go_on()
    assert job.missed(0) == [], "its machine knows what is left to do"
    for broker in (1, 2):
        job.story.replicas_deleted(broker, "u", [0, 1])
    job.go_on()
    assert job.missed(asked) == [], "it is not known to be gone"
    job.stored["u"] = None
    job.asked.clear()
    stops = [(DecisionKind.STOP_REPLICAS, [0, 1, 2, 3])]
    assert job.missed(asked) == [(DecisionKind.CHANGE_PARTITIONS, [0, 1]), *stops]
    assert job.asked == ["u"], "it is read once"
    job.stored["u"] = StoredTopic(TopicZNode({0: [3]}), {})
    assert job.missed(asked) == [], "there is a topic of that name, of which we do not know yet"
    job.story.create("u", [[3]])
    job.go_on()
    assert job.missed(asked) == [], "there is a topic of that name"


def test_a_stop_is_found_again_when_the_last_topic_went(job: Logged) -> None:
    job.end_move()
    job.go_on()
    asked = len(job.story.events)
    for topic in ("t", "u"):
        job.story.write("delete_topic_requested", topic, request_id="r", topic=topic)
    for broker, topic, partitions in [(1, "t", [0]), (3, "t", [0]), (1, "u", [0, 1])]:
        job.story.replicas_deleted(broker, topic, partitions)
    job.story.replicas_deleted(2, "u", [0, 1])
    job.go_on()
    job.image = image_of(job.fold.machines())
    assert job.missed(0, asked) == []
    job.stored["t"] = None
    assert job.missed(0, asked) == [(DecisionKind.STOP_REPLICAS, [0])]


@pytest.mark.parametrize(
    ("topic", "rows"),
    [
        pytest.param(None, [0], id="the topic is gone"),
        pytest.param(of_t([1, 3], leader=1, isr=[1, 3]), [0], id="others have taken over"),
        pytest.param(of_t([1, 3, 2], leader=1, isr=[1, 3]), [], id="it is assigned again"),
        pytest.param(of_t([1, 3], leader=2, isr=[2, 1]), [], id="it leads"),
        pytest.param(of_t([1, 3], leader=-1, isr=[2]), [], id="nobody else has the data"),
        pytest.param(StoredTopic(TopicZNode({0: [1, 3]}), {}), [], id="the state is not known"),
        pytest.param(StoredTopic(TopicZNode({1: [1, 3]}), {}), [], id="no such partition"),
        pytest.param(of_t([1, 3], leader=1, isr=[1], topic_id="x"), [], id="another topic"),
    ],
)
def test_what_the_image_does_not_have_is_judged_by_what_is_stored(
    job: Logged, topic: StoredTopic | None, rows: list[int]
) -> None:
    ended = job.end_move()
    job.go_on()
    job.image.forget_partition("t", 0)
    job.stored["t"] = topic
    assert job.missed(ended) == [(DecisionKind.STOP_REPLICAS, rows)] * bool(rows)
    del job.stored["t"]
    assert job.missed(ended) == [], "it cannot be read"


def test_topics_are_read_as_far_as_they_are_legible() -> None:
    session: Any = MemorySession()
    session.put(topic_path("t"), topic_bytes(TopicZNode({0: [1, 2], 1: [2], 2: [1]})))
    state = partition_state_bytes([1], [0], [[1, 2]], 1, [0])[0]
    session.put(partition_state_path("t", 0), state)
    session.put(partition_state_path("t", 1), b"broken")
    session.put(topic_path("u"), b"broken")
    found = read_topics(session, ["t", "u", "v"])
    assert found.keys() == {"t", "v"}
    assert found["v"] is None
    assert found["t"] is not None
    assert found["t"].states == {0: (1, [1, 2])}


@pytest.mark.parametrize("error", [CorruptLog("s.log", 5, 9, "bad checksum"), OSError("broken")])
def test_a_place_that_cannot_be_read_is_told_and_what_is_before_it_is_found(
    job: Logged, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    job.end_move()
    job.go_on()
    damaged = job.reader.end_offset()
    job.story.shut_down(1)
    job.go_on()
    read = job.reader.read

    def read_until_damage(start: int, end: int) -> Iterator[LogRecord]:
        for record in read(start, end):
            if record.offset == damaged:
                raise error
            yield record

    monkeypatch.setattr(job.reader, "read", read_until_damage)
    assert job.missed(0) == [(DecisionKind.STOP_REPLICAS, [0])]
    assert str(error) in caplog.text
