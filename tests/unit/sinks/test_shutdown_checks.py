"""A controlled shutdown that is checked: what is appended, and what the broker is answered."""

from __future__ import annotations

import orjson

from streaming.sinks.batch_events import batch_events
from streaming.sinks.doubts import Doubts
from streaming.sinks.replies import replies
from tests.unit.sinks.support import Job


def test_a_shutdown_is_checked_by_all_slots_together():
    found = Job(slots=4)
    found.story.elect(
        {1: 11, 2: 12, 3: 13},
        **{"controlled.shutdown.safety.check.enable": True, "min.insync.replicas": 2},
    )
    for topic, replicas in (("t", [1, 2]), ("u", [2, 1]), ("v", [1, 2, 3]), ("w", [2, 3])):
        found.story.create(topic, [replicas])
    found.decide()
    asked = {"request_id": "r", "broker_id": 1, "broker_epoch": 101, "version": 3}
    found.story.write("controlled_shutdown_requested", **asked)
    batch = found.decide()
    assert not replies(batch, Doubts(), {})
    (event,) = batch_events(batch)
    assert (event.kind, orjson.loads(event.payload)) == (
        "controlled_shutdown_checked",
        {**asked, "live": [1, 2, 3], "at_risk": [["t", 0], ["u", 0]]},
    )
    found.story.write(event.kind, **orjson.loads(event.payload))
    (answer,) = replies(found.decide(), Doubts(), {})
    assert (answer["error"], answer["remaining"]) == (0, [["t", 0], ["u", 0]])
    assert answer["refused"]
    found.story.write("controlled_shutdown_allowed", broker_id=1)
    found.story.write("controlled_shutdown_requested", **asked)
    (answer,) = replies(found.decide(), Doubts(), {})
    assert not answer["refused"]
