"""Answers of brokers on their way back: events first, then the broker counts as told."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator

import orjson
import pytest

from state.protocol_errors import ProtocolError, error_text
from streaming.sinks import answers
from streaming.sinks.answers import AnswerSink
from streaming.sinks.appender import JobStopping
from streaming.sinks.channel import Answer
from streaming.sinks.decided_so_far import DecidedSoFar
from streaming.sinks.delivery_report import DeliveryReport
from streaming.sinks.unconfirmed_brokers import UnconfirmedBrokers
from streaming.wire.apis import ApiKey
from tests.fixtures.waiting import wait_for
from tests.unit.sinks.support import Job, planner_of


class Ends:
    """Where an AnswerSink's work goes; `happened` is what was done, in order."""

    def __init__(self, folder) -> None:
        self.happened: list[tuple[str, object]] = []
        self.fail: Exception | None = None
        self.told: list[dict[str, object]] = []
        self.path = folder / "pending.json"
        self.unconfirmed = UnconfirmedBrokers(self.path)
        self.unconfirmed.mark([2], 0, 10)
        confirm = self.unconfirmed.confirm

        def noted(broker, end) -> None:
            self.happened.append(("cleared", (broker, end)))
            confirm(broker, end)

        self.unconfirmed.confirm = noted
        job = Job()
        job.story.elect({1: 11, 2: 12})
        job.story.create("t", [[1, 2]])
        job.persist(job.decide())
        metadata, replicas = planner_of(job.image).everything_for([2])[2]
        self.metadata, self.replicas = metadata, replicas
        self.sink = AnswerSink(
            append=self.append,
            report=DeliveryReport(self.outcomes, self.told.append, dict),
            unconfirmed=self.unconfirmed,
            decided=DecidedSoFar(job.image, {}, paused=False, without_term=False),
        )

    def outcomes(self, records) -> None:
        for one in records:
            body = orjson.loads(one.payload)
            said = (body["topic"], body["errors"]) if one.kind == "refused" else body["end_offset"]
            self.happened.append((one.kind, said))

    def append(self, events) -> int:
        if self.fail is not None:
            raise self.fail
        self.happened.append(("appended", [one.kind for one in events]))
        return 0

    def storage_error(self) -> Answer:
        return self.refusal(56)

    def refusal(self, error: int) -> Answer:
        named = [{"topic_name": "t", "partition_index": 0, "error_code": error}]
        body = {"error_code": 0, "partition_errors": named, "topics": None}
        return Answer(2, 102, self.replicas, body)


@pytest.fixture
def ends(tmp_path) -> Iterator[Ends]:
    ends = Ends(tmp_path)
    yield ends
    ends.sink.close()


def test_what_a_broker_said_is_in_the_log_before_it_counts_as_told(ends):
    ends.sink.answered(ends.storage_error())
    ends.sink.confirmed(2, 10)
    ends.sink.close()
    assert ends.happened == [
        ("appended", ["leader_and_isr_answered"]),
        ("cleared", (2, 10)),
        ("confirmed", 10),
    ]
    assert not ends.unconfirmed.marked(2)
    assert not UnconfirmedBrokers(ends.path).marked(2)


def test_many_confirmations_are_kept_and_told_at_once(ends, monkeypatch):
    monkeypatch.setattr(answers, "_PASS_ON_EVERY_S", 3600.0)
    saved = []
    monkeypatch.setattr(ends.unconfirmed, "save", lambda: saved.append(True))
    for end in range(1, 50):
        ends.sink.confirmed(1, end)
        ends.sink.confirmed(2, end)
    ends.sink.close()
    assert len(saved) == 1
    (said,) = ends.told
    assert {id_: one["confirmed"] for id_, one in said["brokers"].items()} == {"1": 49, "2": 49}


def test_a_disk_that_keeps_no_confirmations_ends_none_of_the_others(ends, monkeypatch, caplog):
    monkeypatch.setattr(answers, "_PASS_ON_EVERY_S", 0.0)
    save, full = (
        ends.unconfirmed.save,
        [OSError(errno.ENOSPC, "full"), OSError(errno.ENOSPC, "full")],
    )

    def refused() -> None:
        if full:
            raise full.pop()
        save()

    monkeypatch.setattr(ends.unconfirmed, "save", refused)
    for told, (broker, end) in enumerate([(1, 5), (1, 6), (2, 10)], start=1):
        ends.sink.confirmed(broker, end)
        wait_for("word of a confirmation", lambda told=told: len(ends.told) == told, 20.0)
    assert caplog.text.count("is not kept for a restart") == 1
    assert not UnconfirmedBrokers(ends.path).marked(2)


def test_answers_without_news_append_nothing(ends):
    ends.sink.answered(Answer(2, 102, ends.metadata, {"error_code": 0}))
    ends.sink.close()
    assert ends.happened == []


def test_a_job_that_is_to_end_confirms_nothing_it_could_not_append(ends):
    ends.fail = JobStopping("the front is away")
    ends.sink.answered(ends.storage_error())
    ends.sink.confirmed(2, 10)
    ends.sink.close()
    assert ends.happened == []
    assert ends.unconfirmed.marked(2), "asked again by the next job"


def test_an_answer_that_cannot_be_taken_does_not_stop_the_others(ends, caplog):
    ends.sink.answered(Answer(2, 102, ends.metadata, {}))
    ends.sink.answered(ends.storage_error())
    ends.sink.close()
    assert ends.happened == [("appended", ["leader_and_isr_answered"])]
    assert "an answer of a broker could not be taken" in caplog.text


@pytest.mark.parametrize(("error", "warned"), [(103, True), (6, True), (11, False), (56, False)])
def test_a_refused_replica_is_told_unless_it_was_to_be_expected(ends, caplog, error, warned):
    ends.sink.answered(ends.refusal(error))
    ends.sink.close()
    said = f"broker 2 refuses replicas of topic t, by partition: 0: {error_text(error)}"
    assert (said in caplog.text) == warned
    assert (("refused", ("t", [[0, error]])) in ends.happened) == warned


@pytest.mark.parametrize(
    ("error", "level", "said"),
    [
        (
            ProtocolError.STALE_CONTROLLER_EPOCH,
            logging.WARNING,
            "broker 2 knows a newer controller",
        ),
        (ProtocolError.STALE_BROKER_EPOCH, logging.INFO, "broker 2 has registered again"),
        (
            ProtocolError.UNKNOWN_SERVER_ERROR,
            logging.ERROR,
            "broker 2 answers LeaderAndIsr with error UNKNOWN_SERVER_ERROR (-1)",
        ),
    ],
)
def test_errors_of_a_whole_request_are_told_by_how_bad_they_are(ends, caplog, error, level, said):
    caplog.set_level(logging.INFO)
    ends.sink.answered(Answer(2, 102, ends.replicas, {"error_code": error}))
    ends.sink.close()
    (record,) = [one for one in caplog.records if one.name.endswith("answers")]
    assert (record.levelno, record.getMessage()[: len(said)]) == (level, said)
    assert ends.replicas.api is ApiKey.LEADER_AND_ISR
