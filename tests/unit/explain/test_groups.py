"""A group's decisions are found by its id, whatever characters that has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from state.decisions import DecisionKind, json_decision
from state.protocol_errors import ProtocolError
from streaming.explain.groups import group_changes_before
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter


@pytest.mark.parametrize("group", ["g", 'the "best"', "a\\b", "a\tb", "größe", "漢字"])
def test_the_changes_of_a_group_are_found(tmp_path, group):
    steps = [{"changes": [{"change": "group_created"}], "replies": []}]
    body = json_decision(7, DecisionKind.CHANGE_GROUP, {"group": group, "steps": steps}).body
    record = NewRecord(str(DecisionKind.CHANGE_GROUP), "7:0", body, 5)
    other = body.replace(b'"group":"', b'"group":"x')
    with EmbeddedLogWriter(tmp_path) as writer:
        writer.append([record, replace(record, key="8:0", payload=other)])
    with EmbeddedLogReader(tmp_path) as reader:
        found = list(group_changes_before(reader, reader.end_offset(), group))
    assert [(one.offset, one.changes) for one in found] == [(7, tuple(steps[0]["changes"]))]


@pytest.mark.parametrize(
    ("error", "is_told"),
    [
        (ProtocolError.NONE, False),
        (ProtocolError.MEMBER_ID_REQUIRED, False),
        (ProtocolError.REBALANCE_IN_PROGRESS, False),
        (ProtocolError.GROUP_MAX_SIZE_REACHED, True),
    ],
)
def test_what_a_group_refuses_is_told_unless_it_is_routine(tmp_path, error, is_told):
    reply = {"request_id": "r", "api": "join_group", "error": int(error)}
    steps = [{"changes": [], "replies": [reply]}]
    body = json_decision(7, DecisionKind.CHANGE_GROUP, {"group": "g", "steps": steps}).body
    with EmbeddedLogWriter(tmp_path) as writer:
        writer.append([NewRecord(str(DecisionKind.CHANGE_GROUP), "7:0", body, 5)])
    with EmbeddedLogReader(tmp_path) as reader:
        found = list(group_changes_before(reader, reader.end_offset(), "g"))
    assert [one.replies for one in found] == ([(reply,)] if is_told else [])
