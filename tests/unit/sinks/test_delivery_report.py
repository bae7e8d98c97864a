"""What brokers confirmed goes to the outcome log and to the front, which may be away."""

from __future__ import annotations

import orjson

from streaming.link.job_side import LinkDown
from streaming.sinks.delivery_report import DeliveryReport


def confirmed(broker_id: int, end_offset: int) -> dict[str, int]:
    return {"broker_id": broker_id, "end_offset": end_offset, "at_ms": 5}


def test_the_last_confirmation_of_each_broker_is_told():
    outcomes, messages = [], []
    report = DeliveryReport(
        outcomes.extend,
        lambda head: messages.append(orjson.dumps(head, option=orjson.OPT_NON_STR_KEYS)),
        lambda: {1: 0, 2: len(messages)},
    )
    for body in (confirmed(1, 7), confirmed(2, 7), confirmed(1, 9)):
        report.record("confirmed", body)
    assert [orjson.loads(one.payload)["end_offset"] for one in outcomes] == [7, 7, 9]
    assert {one.kind for one in outcomes} == {"confirmed"}
    assert orjson.loads(messages[-1]) == {
        "type": "delivery",
        "brokers": {"1": {"confirmed": 9, "at_ms": 5}, "2": {"confirmed": 7, "at_ms": 5}},
        "queue_lengths": {"1": 0, "2": 2},
    }


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

    DeliveryReport(outcomes.extend, away, dict).record("confirmed", confirmed(1, 7))
    assert len(outcomes) == 1
