"""Explaining with event logs that end earlier, are others, or were decided about anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from checkpoints.snapshot import Snapshot, write_snapshot
from state.routing import GROUP_SLOTS, Layout
from streaming.cli import main
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.paths import DataDir
from tests.unit.explain.recording import Recording, explained, run


@pytest.mark.parametrize("has_events", [True, False])
def test_a_moment_that_no_log_has_come_to_is_refused(
    recording: Recording, capsys: pytest.CaptureFixture[str], has_events: bool
) -> None:
    """As a time in milliseconds is, which would be taken for an offset."""
    last = recording.decide()
    if not has_events:
        recording.close()
        shutil.rmtree(recording.folders.events)
    for at in (last + 1, 1_700_000_000_000):
        assert run(recording, "my-topic-0", "--at", str(at)) == 2
        said = f"--at {at}: allowed are offsets of events, up to {last}, and times in ISO 8601"
        assert said in capsys.readouterr().err
    assert run(recording, "my-topic-0", "--at", str(last)) == 0


def test_an_event_of_another_log_is_not_told_as_the_cause(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    recording.decide()
    recording.close()
    shutil.rmtree(recording.folders.events)
    with EmbeddedLogWriter(recording.folders.events) as log:
        for one in recording.story.events:
            log.append([NewRecord(one.kind, one.key, one.payload, one.time_ms + 1)])
    for options in ([], ["--story", "2"]):
        assert run(recording, "my-topic-0", *options) == 2
        said = capsys.readouterr()
        assert "the event log is another one than these decisions are from" in said.err
        assert not said.out


def test_a_replay_under_other_settings_is_explained_by_those(
    recording: Recording, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its decisions, and the events that it was made from, as `event.log.url` gives them; also
    where these begin after the election.
    """
    recording.story.alter("my-topic", 0, [1])
    start = recording.decide() + 1
    machines = tmp_path / "machines.parquet"
    layout = Layout(recording.fold.slots, GROUP_SLOTS)
    write_snapshot(machines, Snapshot(start, layout, dict(recording.fold.states)))
    recording.story.unregister(1)
    recording.decide()
    recording.close()
    events, out = recording.folders.events, tmp_path / "out"
    what_if = ["--set", "unclean.leader.election.enable=true"]
    with pytest.raises(SystemExit) as left:
        main(["replay", str(events), "--local", "--out", str(out), *what_if])
    assert not left.value.code
    replayed = DataDir(out)
    shutil.copytree(events, replayed.events)
    recording.folders = replayed
    capsys.readouterr()
    (said,) = explained(recording, capsys)
    (row,) = said["decided"]["change_partitions"]
    assert row["leader"] == 2
    (election,) = said["elections"]
    assert (election["leader"], election["unclean_allowed"]) == (2, True)
    last = recording.story.events[start]
    shutil.rmtree(replayed.events)
    with EmbeddedLogWriter(replayed.events, first_offset=start) as log:
        log.append([NewRecord(last.kind, last.key, last.payload, last.time_ms)])
    (said,) = explained(recording, capsys, "--from-checkpoint", str(machines))
    assert said["elections"] == [election]
