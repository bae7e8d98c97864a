"""Explaining partitions from a data folder, through the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from checkpoints.reconstruct import concerns
from checkpoints.snapshot import Snapshot, write_snapshot
from state.routing import GROUP_SLOTS, Layout
from streaming.explain import changes, story
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from tests.logs.group_logs import Author
from tests.unit.explain.recording import PORTS, Recording, explained, run


def group_story(
    recording: Recording, capsys: pytest.CaptureFixture[str], *arguments: str
) -> list[dict[str, Any]]:
    assert run(recording, "g", "--json", *arguments) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_dead_leader(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    recording.story.alter("my-topic", 0, [1, 3])
    recording.story.unregister(1)
    event = recording.decide()
    (said,) = explained(recording, capsys)
    assert (said["event"]["offset"], said["event"]["kind"]) == (
        event,
        "broker_registrations_changed",
    )
    (row,) = said["decided"]["change_partitions"]
    assert (row["leader_before"], row["leader"], row["isr"]) == (1, 3, [3])
    assert (row["rule"], row["partition_epoch"]) == ("offline_partition_elected", 2)
    (election,) = said["elections"]
    assert election["isr"] == [1, 3]
    assert {one["broker"]: one["finding"] for one in election["candidates"]} == {
        1: "not_registered",
        2: "not_in_sync",
        3: "elected",
    }
    assert said["persisted"]["written_at_ms"] == said["event"]["time_ms"] + 5
    assert said["brokers_complete"]
    assert said["brokers"] == [
        {
            "id": 2,
            "delivered_at_ms": said["event"]["time_ms"] + 7,
            "confirmed_at_ms": said["event"]["time_ms"] + 9,
            "refused": None,
        },
        {"id": 3, "delivered_at_ms": None, "confirmed_at_ms": None, "refused": None},
    ]


def test_a_story_reads_the_events_once(
    recording: Recording, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one = []
    for isr in ([1, 3], [1], [1, 2], [1, 2, 3]):
        recording.story.alter("my-topic", 0, isr)
        recording.decide()
        one_by_one += explained(recording, capsys)
    looked_at: list[tuple[str, str, str]] = []

    def noted(kind: str, key: str, topic: str) -> bool:
        looked_at.append((kind, key, topic))
        return concerns(kind, key, topic)

    monkeypatch.setattr(story, "concerns", noted)
    assert explained(recording, capsys, "--story", "4") == one_by_one
    assert len(looked_at) == len(recording.story.events)


def test_nobody_can_lead(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    """What is refused is explained, long after the leader was lost."""
    recording.story.alter("my-topic", 0, [1])
    recording.story.unregister(1)
    recording.decide()
    recording.story.unregister(2)
    event = recording.decide()
    (said,) = explained(recording, capsys)
    assert said["event"]["offset"] == event
    (refused,) = said["decided"]["refuse_transition"]
    assert refused["reason"] == "no_candidate"
    assert said["elections"][0]["leader"] == -1
    assert run(recording, "my-topic-0") == 0
    shown = capsys.readouterr().out
    assert "partition offline -> online refused: no_candidate" in shown
    assert "broker 3: not in the ISR" in shown


def test_who_is_told_again_is_not_a_change(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    created = recording.decide() - 1
    recording.story.register({3: 13}, add=200, how="updated")
    recording.decide()
    assert explained(recording, capsys)[0]["event"]["offset"] == created


def test_what_only_looks_at_a_partition_is_not_a_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rebalance timer proposes it again and again, and a shutdown is checked first."""
    recording = Recording(tmp_path)
    story = recording.story
    story.elect(
        PORTS,
        **{
            "auto.leader.rebalance.enable": True,
            "controlled.shutdown.safety.check.enable": True,
            "min.insync.replicas": 3,
        },
    )
    story.create("my-topic", [[1, 2, 3]])
    story.unregister(1)
    story.register({1: 11}, add=200)
    changed = story.alter("my-topic", 0, [2, 3, 1], leader_epoch=1, partition_epoch=1)
    recording.decide()
    (deadline_ms,) = [
        timers["leader_rebalance"]
        for machine in recording.fold.machines()
        if "leader_rebalance" in (timers := getattr(machine, "timers", {}))
    ]
    story.write("timer_due", timer="leader_rebalance", deadline_ms=deadline_ms)
    story.shut_down(2)
    recording.decide()
    with EmbeddedLogReader(recording.folders.decisions) as decisions:
        kinds = {one.kind for one in decisions.read(0, decisions.end_offset())}
    assert {"propose_elections", "report_at_risk"} <= kinds
    (said,) = explained(recording, capsys)
    assert (said["event"]["offset"], sorted(said["decided"])) == (
        changed,
        ["change_partitions", "reply"],
    )
    recording.close()


def test_what_is_asked_of_others_is_not_a_change(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another partition is reassigned, and requests about the whole topic are refused."""
    story = recording.story
    story.create("wide", [[1, 2], [1, 2]])
    created = recording.decide()
    story.move("wide", {1: [1, 3]})
    recording.decide()
    story.alter("wide", 1, [1, 2, 3], leader_epoch=1, partition_epoch=1)
    moved = recording.decide()
    story.create("wide", [[1, 2]])
    recording.decide()
    with EmbeddedLogReader(recording.folders.decisions) as decisions:
        kinds = {one.kind for one in decisions.read(0, decisions.end_offset())}
    assert {"rewrite_assignment", "complete_reassignment"} <= kinds
    for name, event in (("wide-0", created), ("wide-1", moved)):
        assert run(recording, name, "--json") == 0
        assert json.loads(capsys.readouterr().out)["event"]["offset"] == event


def test_a_request_that_is_refused_as_a_whole_is_told_of_its_partitions(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of a broker that has registered anew meanwhile; the answer does not list them."""
    story = recording.story
    story.create("wide", [[1, 2], [1, 2]])
    created = recording.decide()
    refused = story.alter("wide", 1, [1], broker_epoch=1)
    recording.decide()
    for name, event in (("wide-0", created), ("wide-1", refused)):
        assert run(recording, name, "--json") == 0
        assert json.loads(capsys.readouterr().out)["event"]["offset"] == event
    assert run(recording, "wide-1") == 0
    assert "refused, error STALE_BROKER_EPOCH" in capsys.readouterr().out


@pytest.mark.parametrize("chunk_records", [1, 2_000])
def test_a_partition_that_no_decision_names_is_told_as_such(
    recording: Recording,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    chunk_records: int,
) -> None:
    """What is decided about a whole topic does not say that the topic has the partition."""
    monkeypatch.setattr(changes, "_CHUNK_RECORDS", chunk_records)
    story = recording.story
    marked = story.write("topic_deletion_requested", "my-topic", topic="my-topic")
    story.write("topic_deletion_requested", "other", topic="other")
    recording.decide()
    (said,) = explained(recording, capsys, "--at", str(marked))
    assert (said["event"]["offset"], said["partition_named"]) == (marked, True)
    for name, arguments, is_named in (
        ("other-0", [], True),
        ("other-0", ["--story", "2"], True),
        ("other-9", [], False),
        ("other-9", ["--story", "2"], False),
    ):
        assert run(recording, name, *arguments) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert "mark_topic_deletion" in shown
        note = "no retained decision names partition 9"
        assert shown.count(note) == int(not is_named), (name, arguments)
        assert run(recording, name, *arguments, "--json") == 0
        lines = capsys.readouterr().out.splitlines()
        assert {json.loads(line)["partition_named"] for line in lines} == {is_named}


def test_an_earlier_moment(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    created = recording.decide() - 1
    altered = recording.story.alter("my-topic", 0, [1, 2])
    recording.story.unregister(1)
    recording.decide()
    for at in (str(altered), "1970-01-01T00:00:01.005"):
        (said,) = explained(recording, capsys, "--at", at)
        assert said["event"]["offset"] == altered, at
    (said,) = explained(recording, capsys, "--at", str(altered - 1))
    assert said["event"]["offset"] == created
    assert run(recording, "my-topic-0", "--at", "2") == 1
    assert "up to then" in capsys.readouterr().err


def test_a_story_is_told_from_its_beginning(
    recording: Recording, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the records of an event lie in two chunks."""
    recording.story.alter("my-topic", 0, [1, 2])
    recording.story.alter("my-topic", 0, [3], broker=3)
    recording.story.unregister(1)
    recording.decide()
    for records in (1, 2, 3, 2_000):
        monkeypatch.setattr(changes, "_CHUNK_RECORDS", records)
        said = explained(recording, capsys, "--story", "3")
        assert [sorted(one["decided"]) for one in said] == [
            ["change_partitions", "reply"],
            ["reply"],
            ["change_partitions", "stop_replicas"],
        ]
    assert run(recording, "my-topic-0", "--story", "9") == 0
    shown = capsys.readouterr().out
    assert "create_topic" in shown
    assert "refused, error INVALID_UPDATE_VERSION (95)" in " ".join(shown.split())


def test_without_an_event_log(
    recording: Recording, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    recording.story.unregister(1)
    recording.decide()
    recording.close()
    for file in recording.folders.events.iterdir():
        file.unlink()
    (said,) = explained(recording, capsys)
    assert said["elections"] is None
    assert said["event"]["kind"] is None
    assert [one["id"] for one in said["brokers"]] == [2, 3], "the replicas that were told"
    assert not said["brokers_complete"]
    assert run(recording, "my-topic-0") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "there is no event log in this folder; if it is in a topic, set event.log.url" in shown
    assert "without the event log: who else could have led is not known" in shown
    assert "who else was registered, and told, is not known" in shown


def test_machines_of_before_take_the_place_of_the_log(
    recording: Recording, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    recording.story.alter("my-topic", 0, [1, 3])
    start = recording.decide() + 1
    machines = tmp_path / "machines.parquet"
    write_snapshot(
        machines,
        Snapshot(start, Layout(recording.fold.slots, GROUP_SLOTS), dict(recording.fold.states)),
    )
    recording.story.unregister(1)
    recording.decide()
    recording.close()
    shutil.rmtree(recording.folders.events)
    last = recording.story.events[start]
    with EmbeddedLogWriter(recording.folders.events, first_offset=start) as log:
        log.append([NewRecord(last.kind, last.key, last.payload, last.time_ms)])
    assert explained(recording, capsys)[0]["elections"] is None
    assert run(recording, "my-topic-0") == 0
    assert "does not reach back" in capsys.readouterr().out
    assert run(recording, "my-topic-0", "--at", str(start - 1)) == 0
    assert "(the event log has let go of it)" in capsys.readouterr().out
    (said,) = explained(recording, capsys, "--from-checkpoint", str(machines))
    (election,) = said["elections"]
    assert (election["isr"], election["leader"]) == ([1, 3], 3)
    too_late = tmp_path / "later.parquet"
    write_snapshot(
        too_late, Snapshot(start + 1, Layout(2, GROUP_SLOTS), dict(recording.fold.states))
    )
    assert run(recording, "my-topic-0", "--from-checkpoint", str(too_late)) == 2
    assert f"not before {start}" in capsys.readouterr().err
    too_early = tmp_path / "earlier.parquet"
    write_snapshot(
        too_early, Snapshot(start - 1, Layout(2, GROUP_SLOTS), dict(recording.fold.states))
    )
    assert run(recording, "my-topic-0", "--from-checkpoint", str(too_early)) == 2
    assert f"the event log begins at {start}" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["my-topic"], 1, "if it is a topic, name a partition: my-topic-0"),
        (["my-topic-0", "--group"], 1, "no change of group my-topic-0"),
        (["my-topic-1"], 1, "no change of my-topic-1"),
        (["g-1"], 1, "if a consumer group has that name: --group"),
        (["g-1"], 1, "log: another controller may have changed it"),
        (["g-1", "--story", "2"], 1, "if a consumer group has that name: --group"),
        (["my-topic-0", "--at", "noon"], 2, "--at 'noon'"),
    ],
)
def test_what_cannot_be_explained(
    recording: Recording,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    why: str,
) -> None:
    recording.decide()
    assert run(recording, *arguments) == code
    assert why in capsys.readouterr().err


def test_a_groups_story_is_in_order_and_says_why_a_member_was_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A member joins, gets a generation, and is not heard of any more."""
    author = Author()
    author.start(0, 0, 0)
    author.settle(0, 1, 0)
    author.settle(0, 1, 0)
    author.wait(5, 1, 0)
    recording = Recording(tmp_path)
    recording.story.events = author.events
    recording.decide()
    said = group_story(recording, capsys, "--story", "99")
    assert [event["event"]["offset"] for event in said] == sorted(
        event["event"]["offset"] for event in said
    )
    changes = [change for event in said for change in event["changes"]]
    kinds = [change["change"] for change in changes]
    assert kinds.index("member_added") < kinds.index("generation_started")
    assert kinds.index("generation_started") < kinds.index("member_removed")
    removed = next(one for one in changes if one["change"] == "member_removed")
    assert removed["reason"] in {"session_expired", "rebalance_timeout", "sync_timeout"}
    assert run(recording, "g") == 0
    assert f"member removed: {removed['reason']}" in capsys.readouterr().out
    assert len(group_story(recording, capsys, "--story", "1")) == 1
    recording.close()
