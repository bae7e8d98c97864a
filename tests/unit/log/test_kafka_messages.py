"""Responses can be read whichever threads ask for their classes first."""

from __future__ import annotations

import gc

from kafka.protocol.api_header import ResponseClassRegistry
from kafka.protocol.consumer.group import HeartbeatResponse

from streaming.log.kafka_messages import make_message_classes


class _Header:
    request_api_key = HeartbeatResponse.API_KEY
    request_api_version = 4


def test_no_class_is_made_any_more_when_a_response_comes() -> None:
    make_message_classes()
    made = dict(HeartbeatResponse._VERSIONS)
    assert set(made) == set(range(HeartbeatResponse.max_version + 1))
    gc.collect()
    assert ResponseClassRegistry.get_response_class(_Header()) is made[4]
    assert made == HeartbeatResponse._VERSIONS
