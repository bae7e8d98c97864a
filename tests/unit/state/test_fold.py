"""Events that cannot be read or break a machine are set aside, and cost the others nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import orjson
import pytest

from checkpoints.fold import fold_state
from checkpoints.machine_format import decode_machine
from state.cluster.handlers import CLUSTER_HANDLERS
from state.decisions import DecisionKind
from state.events import Event
from state.groups.handlers import GROUP_HANDLERS
from state.groups.payloads.requests import GroupRequest
from state.partitions.handlers import SLOT_HANDLERS
from state.partitions.slot import Slot
from state.payloads.topics import TopicRemoved
from state.routing import GROUP_SLOTS, Layout, machine_keys, scope
from tests.logs.log_parts import POISON
from tests.unit.state.support import Controller


@pytest.mark.parametrize(("kind", "key", "payload"), POISON)
def test_what_cannot_be_read_changes_nothing(kind: str, key: str, payload: bytes) -> None:
    states = Controller().states
    [machine] = machine_keys(scope(kind, key), Layout(1, GROUP_SLOTS))[-1:]
    after, [decision] = fold_state(machine, states[machine], [Event(9, 9, kind, key, payload)])
    assert after == states[machine]
    body = orjson.loads(decision.body)
    assert decision.kind is DecisionKind.SET_ASIDE
    assert (body["kind"], body["key"], body["payload_bytes"]) == (kind, key, len(payload))
    assert body["reason"]


def test_a_machine_that_fails_goes_on_as_if_the_event_had_not_happened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(slot: Slot, event: Event, payload: object) -> None:
        slot.table.topics.clear()
        raise ZeroDivisionError("on purpose")

    monkeypatch.setitem(SLOT_HANDLERS, TopicRemoved, fail)
    controller = Controller()
    controller.topic("t", [[1]])
    removed = Event(20, 1, "topic_removed", "t", b'{"topic":"t"}')
    changed = orjson.dumps({"topic": "t", "unclean": True})
    events = [removed, Event(21, 2, "topic_config_changed", "t", changed)]
    data, decisions = fold_state(0, controller.states[0], events)
    assert [(one.offset, one.kind) for one in decisions] == [(20, DecisionKind.SET_ASIDE)]
    assert orjson.loads(decisions[0].body)["reason"] == "ZeroDivisionError: on purpose"
    assert decode_machine(data).table.topics[0].unclean is True


@pytest.mark.parametrize("handlers", [CLUSTER_HANDLERS, SLOT_HANDLERS, GROUP_HANDLERS])
def test_a_handler_is_named_after_its_event(
    handlers: Mapping[type, Callable[..., object]],
) -> None:
    for payload, handler in handlers.items():
        event = GroupRequest if issubclass(payload, GroupRequest) else payload
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event.__name__).lower()
        assert handler.__name__ == f"on_{words}"
