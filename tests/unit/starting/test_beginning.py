"""Where a job begins, by what its data folder has of a log and a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkpoints.layout import LAYOUT_FILE, CheckpointMismatch, check_layout
from state.cluster.authority import Authority
from state.cluster.cluster import Cluster
from state.event_kinds import EventKind
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.paths import DataDir
from streaming.settings_loader import load_settings
from streaming.starting.beginning import first_event, knows_no_term
from tests.fixtures.job_checkpoints import note_state_format

PAUSED = NewRecord(EventKind.CONTROLLER_PAUSED, "", b'{"reason":"r"}')
ELECTED = NewRecord(EventKind.CONTROLLER_ELECTED, "", b"{}")
REMOVED = NewRecord(EventKind.TOPIC_REMOVED, "t", b"{}")


class Folder:
    def __init__(self, root: Path) -> None:
        self.settings = load_settings(overrides=[f"data.dir={root}"], environment={})
        self.folders = DataDir(root)
        self.checkpoint = self.folders.checkpoint
        self.broken = root / "checkpoint.broken"

    def log(self, *records: NewRecord, retained_from: int = 0) -> None:
        with EmbeddedLogWriter(self.folders.events, segment_bytes=1) as writer:
            for record in records:
                writer.append([record])
            writer.truncate_before(retained_from)

    def batch(self, number: int, end: int, *, committed: bool = True) -> None:
        texts = {"offsets": f'v1\n{{}}\n{{"offset":{end}}}', "commits": "v1\n{}"}
        for name in ("offsets", "commits")[: 1 + committed]:
            (self.checkpoint / name).mkdir(parents=True, exist_ok=True)
            (self.checkpoint / name / str(number)).write_text(texts[name])
        note_state_format(self.checkpoint)
        if not (self.checkpoint / LAYOUT_FILE).exists():
            check_layout(self.checkpoint, self.settings.layout, self.settings.shuffle_partitions)

    def begins(self) -> int:
        first = first_event(self.settings, self.folders)
        assert (self.checkpoint / LAYOUT_FILE).exists()
        return first


@pytest.fixture
def folder(tmp_path) -> Folder:
    return Folder(tmp_path)


def test_an_empty_folder_begins_with_the_first_event(folder):
    assert folder.begins() == 0
    folder.log()
    assert folder.begins() == 0


def test_what_came_before_the_first_election_is_folded(folder):
    folder.log(PAUSED, REMOVED)
    assert folder.begins() == 0
    folder.batch(0, 0, committed=False)
    assert folder.begins() == 0
    assert not folder.broken.exists()


def test_a_checkpoint_goes_on_behind_its_last_batch(folder):
    folder.log(ELECTED, REMOVED, REMOVED, REMOVED, retained_from=1)
    folder.batch(6, 1)
    folder.batch(7, 2)
    folder.batch(8, 4, committed=False)
    assert folder.begins() == 2


def test_without_a_checkpoint_nothing_is_carried_out_again(folder):
    folder.log(ELECTED, REMOVED)
    assert folder.begins() == 2


def test_without_a_checkpoint_a_log_without_its_beginning_is_not_waited_on(folder):
    folder.log(ELECTED, REMOVED, REMOVED, retained_from=2)
    assert folder.begins() == 3


def test_a_batch_that_was_planned_and_never_committed_does_not_count(folder):
    folder.log(ELECTED, REMOVED)
    folder.batch(0, 1, committed=False)
    assert folder.begins() == 2
    assert (folder.checkpoint.with_name("checkpoint.uncommitted") / "offsets").exists()
    assert not (folder.checkpoint / "offsets").exists()


def test_a_checkpoint_that_cannot_be_read_is_kept_and_said_to_be_so(folder, caplog):
    folder.log(ELECTED, REMOVED)
    folder.batch(3, 1)
    (folder.checkpoint / "offsets" / "3").write_text("")
    assert folder.begins() == 2
    assert (folder.broken / "commits" / "3").exists()
    [said] = [one.getMessage() for one in caplog.records]
    assert "offsets/3 cannot be read: it has 0 lines of 3" in said
    assert str(folder.broken) in said


@pytest.mark.parametrize(("kept", "end"), [([ELECTED], 5), ([ELECTED, REMOVED, REMOVED], 1)])
def test_a_log_that_does_not_lead_on_is_refused_with_what_to_do(folder, kept, end, monkeypatch):
    monkeypatch.setattr("streaming.log.recorded._HEAD_TIMEOUT_S", 0.2)
    folder.log(*kept, retained_from=len(kept) - 1)
    folder.batch(3, end)
    first, last = len(kept) - 1, len(kept)
    with pytest.raises(
        CheckpointMismatch,
        match=f"up to offset {end}, the log .* has {first} to {last}: .* an empty data.dir instead",
    ):
        first_event(folder.settings, folder.folders)


def test_a_checkpoint_of_other_settings_is_refused(folder):
    folder.begins()
    other = load_settings(overrides=[f"data.dir={folder.folders.root}", "slots=3"], environment={})
    with pytest.raises(CheckpointMismatch, match="was made with slots"):
        first_event(other, folder.folders)


def test_a_checkpoint_that_says_nothing_of_its_slots_is_refused(folder):
    folder.log(ELECTED, REMOVED)
    folder.batch(3, 1)
    (folder.checkpoint / LAYOUT_FILE).unlink()
    with pytest.raises(CheckpointMismatch, match=f"no {LAYOUT_FILE}, which says how many slots"):
        first_event(folder.settings, folder.folders)


def test_a_term_is_known_by_its_epoch_whether_it_lasts_or_not():
    assert knows_no_term([])
    assert knows_no_term([Cluster()])
    assert not knows_no_term([Cluster(authority=Authority(epoch=3))])
