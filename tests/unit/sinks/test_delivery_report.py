"""What brokers confirmed goes to the outcome log and to the front, which may be away."""

from __future__ import annotations

import sys
import threading

import orjson
import pytest

from streaming.link.job_side import LinkDown
from streaming.sinks.delivery_report import DeliveryReport


def test_the_front_is_told_of_what_was_confirmed_since():
    outcomes, messages = [], []
    report = DeliveryReport(
        outcomes.extend,
        lambda head: messages.append(orjson.dumps(head, option=orjson.OPT_NON_STR_KEYS)),
        lambda: {1: 0, 2: len(messages)},
    )
    report.confirmed(1, 7, 5)
    report.confirmed(2, 7, 5)
    report.tell()
    report.confirmed(1, 9, 6)
    report.tell()
    assert [orjson.loads(one.payload)["end_offset"] for one in outcomes] == [7, 7, 9]
    assert {one.kind for one in outcomes} == {"confirmed"}
    assert [orjson.loads(one) for one in messages] == [
        {
            "type": "delivery",
            "brokers": {"1": {"confirmed": 7, "at_ms": 5}, "2": {"confirmed": 7, "at_ms": 5}},
            "queue_lengths": {"1": 0, "2": 0},
        },
        {
            "type": "delivery",
            "brokers": {"1": {"confirmed": 9, "at_ms": 6}},
            "queue_lengths": {"1": 0, "2": 1},
        },
    ]
    so_far = report.so_far()
    assert {id_: one["confirmed"] for id_, one in so_far.brokers.items()} == {"1": 9, "2": 7}
    assert so_far.queue_lengths == {"1": 0, "2": 2}


def test_what_was_sent_is_an_outcome_of_its_own():
    outcomes = []
    DeliveryReport(outcomes.extend, lambda _: None, dict).sent(3, 8)
    (record,) = outcomes
    body = orjson.loads(record.payload)
    assert (record.kind, body["broker_id"], body["end_offset"]) == ("delivered", 3, 8)
    assert body["at_ms"] > 0


def test_a_front_that_is_away_costs_no_outcome():
    outcomes = []

    def away(_: object) -> None:
        raise LinkDown("nobody listens")

    report = DeliveryReport(outcomes.extend, away, dict)
    report.confirmed(1, 7, 5)
    report.tell()
    assert len(outcomes) == 1


@pytest.fixture
def switching_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching_often")
def test_a_front_can_come_while_brokers_confirm():
    report = DeliveryReport(lambda _: None, lambda _: None, dict)
    for id_ in range(1_000):
        report.confirmed(id_, 7, 5)

    def confirm() -> None:
        for id_ in range(1_000, 4_000):
            report.confirmed(id_, 7, 5)

    confirming = threading.Thread(target=confirm)
    confirming.start()
    while confirming.is_alive():
        assert len(report.so_far().brokers) >= 1_000
    confirming.join()
