"""What came of a change: written or not, and who was told, as far as it is still known."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from tests.unit.explain.recording import Recording, explained, run


@pytest.mark.parametrize(
    ("persisted", "why"),
    [
        ({"lost": [[6, "my-topic", 0]]}, "the znode held something else"),
        ({"lost": [[6, "other", 0]]}, None),
        (
            {"lost": [[6, "my-topic", 0]], "rejections": [[6, "my-topic", 0, "NO_AUTH"]]},
            "ZooKeeper rejects it: NO_AUTH",
        ),
        (
            {"lost": [[6, "my-topic", 0]], "rejections": [[5, "my-topic", None, "too large"]]},
            "ZooKeeper rejects it: too large",
        ),
        (
            {"lost": [[6, "my-topic", 0]], "rejections": [[6, "my-topic", 1, "NO_AUTH"]]},
            "the znode held something else",
        ),
        ({"fenced_until": 7}, "another controller had taken over"),
        ({"fenced_until": 6}, None),
    ],
)
def test_a_write_that_was_lost(
    recording: Recording,
    capsys: pytest.CaptureFixture[str],
    persisted: dict[str, Any],
    why: str | None,
) -> None:
    recording.decide()
    recording.story.write("topic_removed", "nobody", topic="nobody")
    recording.story.unregister(1)
    assert recording.decide(**persisted) == 6
    (said,) = explained(recording, capsys)
    assert said["persisted"]["lost"] == why
    assert [one["id"] for one in said["brokers"]] == ([] if why else [2, 3])
    assert run(recording, "my-topic-0") == 0
    assert ("confirmed" in capsys.readouterr().out) is (why is None)


def test_a_broker_that_refuses_its_replica(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it refuses counts for the change that its next confirmation counts for."""
    errors = [[0, ProtocolError.INCONSISTENT_TOPIC_ID], [1, ProtocolError.UNKNOWN_SERVER_ERROR]]
    recording.decide()
    recording.outcome("refused", broker_id=2, at_ms=1, topic="my-topic", errors=errors)
    recording.outcome("refused", broker_id=2, at_ms=1, topic="other", errors=[[0, 6]])
    recording.outcome("refused", broker_id=3, at_ms=1, topic="my-topic", errors=errors)
    recording.story.alter("my-topic", 0, [1, 3])
    recording.story.unregister(1)
    recording.decide()
    before, after = explained(recording, capsys, "--story", "2")
    refused = {one["id"]: one["refused"] for one in before["brokers"]}
    assert refused == {1: None, 2: ProtocolError.INCONSISTENT_TOPIC_ID, 3: None}
    assert {one["id"]: one["refused"] for one in after["brokers"]} == {2: None, 3: None}
    assert run(recording, "my-topic-0", "--story", "2") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "confirmed by 1, 2 (refuses the replica: INCONSISTENT_TOPIC_ID (103)) of 1, 2, 3" in said
    at = str(before["event"]["offset"])
    assert run(recording, "my-topic-0", "--at", at) == 0
    assert "refuses the replica: INCONSISTENT_TOPIC_ID (103)" in capsys.readouterr().out


def test_without_an_outcome_log_nothing_is_said_to_come(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in the folder of a shadow, which writes nothing and tells nobody."""
    recording.decide()
    recording.close()
    shutil.rmtree(recording.folders.outcomes)
    (said,) = explained(recording, capsys)
    assert (said["outcome_retained"], said["persisted"]) == (False, None)
    for options in ([], ["--story", "9"]):
        assert run(recording, "my-topic-0", *options) == 0
        shown = capsys.readouterr().out
        assert "not known: there is no outcome log in this folder" in shown
        assert "not yet" not in shown


def test_outcomes_of_later_batches_say_nothing_of_an_event_whose_own_are_gone(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    """Retention cuts whole segments of each log by itself."""
    recording.story.unregister(1)
    recording.decide()
    recording.cut_outcomes()
    (said,) = explained(recording, capsys)
    assert (said["outcome_retained"], said["persisted"]) == (False, None)
    recording.story.write("topic_removed", "nobody", topic="nobody")
    recording.decide()
    (said,) = explained(recording, capsys)
    assert (said["outcome_retained"], said["persisted"]) == (False, None)
    assert {one["confirmed_at_ms"] for one in said["brokers"]} == {None}
    for arguments in (["my-topic-0"], ["my-topic-0", "--story", "9"]):
        assert run(recording, *arguments) == 0
        shown = capsys.readouterr().out
        assert "not known any more" in shown
        assert "not yet" not in shown
        assert "confirmed by" not in shown


@pytest.mark.parametrize("batches", [1, 2])
def test_outcomes_of_an_event_that_are_kept_are_told_where_earlier_ones_are_gone(
    recording: Recording, capsys: pytest.CaptureFixture[str], batches: int
) -> None:
    recording.story.unregister(1)
    event = recording.decide()
    recording.cut_outcomes(batches)
    (said,) = explained(recording, capsys)
    assert said["outcome_retained"]
    assert (said["persisted"]["batch_id"], said["persisted"]["lost"]) == (event, None)


@pytest.mark.parametrize("options", [[], ["--json"]], ids=str)
def test_a_damaged_outcome_log_hides_no_decision(
    recording: Recording, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    recording.story.unregister(1)
    recording.decide()
    for segment in recording.folders.outcomes.glob("*.log"):
        data = bytearray(segment.read_bytes())
        data[-1] ^= 1
        segment.write_bytes(data)
    assert run(recording, "my-topic-0", *options) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "offline_partition_elected" in said
    assert "checksum" in said
