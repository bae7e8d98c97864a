"""`helmstream replay --local` and `helmstream diff`, as a user runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from checkpoints.replay import Digest, fold_batch
from state.events import Event
from streaming import folding
from streaming.cli import main
from streaming.log.api import LogRecord, NewRecord
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from streaming.log.json_lines import write_json_lines
from streaming.replay import local
from tests.fixtures.folding import fold_log
from tests.fixtures.unavailable import unavailable_partition
from tests.logs.state_logs import long_log

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def log() -> list[Event]:
    return long_log(11, plausible=True)


@pytest.fixture
def file(tmp_path: Path, log: list[Event]) -> Path:
    return written(log, tmp_path / "events.jsonl")


def written(log: list[Event], path: Path) -> Path:
    with path.open("w", encoding="utf-8") as out:
        write_json_lines(
            (LogRecord(e.offset, e.time_ms, e.kind, e.key, e.payload) for e in log), out
        )
    return path


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


def digest_of(log: list[Event]) -> str:
    digest = Digest()
    digest.update(fold_log(log, 1)[1])
    return digest.hexdigest()


@pytest.fixture
def replay(capsys: pytest.CaptureFixture[str]):
    def replay(*arguments: object) -> str:
        """Return the last line."""
        assert run("replay", "--local", *arguments) == 0
        return capsys.readouterr().out.splitlines()[-1]

    return replay


@pytest.mark.parametrize("options", [[], ["--batch", 1, "--slots", 1], ["--batch", 7]], ids=str)
def test_the_last_line_is_the_digest(file, log, tmp_path, replay, options):
    wanted = f"digest {digest_of(log)}"
    assert replay(file, "--out", tmp_path / "out", *options) == wanted
    assert replay(file, "--out", tmp_path / "out", *options) == wanted, "again: nothing to do"


def test_a_folder_is_named_as_it_is_called(file, tmp_path, capsys):
    out = tmp_path / "[out]"
    assert run("replay", "--local", file, "--out", out) == 0
    assert f"decisions in {out}/decisions" in capsys.readouterr().out


def test_what_is_decided_is_a_decision_log_with_the_events_times(file, log, tmp_path, replay):
    replay(file, "--out", tmp_path / "out")
    decisions = fold_log(log, 1)[1]
    with EmbeddedLogReader(tmp_path / "out" / "decisions") as reader:
        found = list(reader.read(0, reader.end_offset()))
    assert [(one.key, one.kind, one.payload) for one in found] == [
        (f"{one.offset}:{one.ordinal}", one.kind, one.body) for one in decisions
    ]
    assert [one.time_ms for one in found] == [log[one.offset].time_ms for one in decisions]


@pytest.mark.parametrize("name", ["decisions", "outcomes"])
def test_a_log_of_something_else_is_not_folded(file, tmp_path, replay, capsys, name):
    replay(file, "--out", tmp_path / "out")
    with EmbeddedLogWriter(tmp_path / "out" / "outcomes") as writer:
        writer.append([NewRecord("persisted", "", b"{}")])
    assert run("replay", "--local", tmp_path / "out" / name, "--out", tmp_path / "again") == 2
    assert f"{name} is no event log: its first record is" in capsys.readouterr().err
    assert not (tmp_path / "again").exists()


def test_a_log_folder_gives_what_its_export_gives(file, log, tmp_path, replay):
    with EmbeddedLogWriter(tmp_path / "data" / "events") as writer:
        writer.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in log])
    assert run("log", "export", tmp_path / "data", tmp_path / "again.jsonl") == 0
    assert (tmp_path / "again.jsonl").read_bytes() == file.read_bytes()
    assert replay(tmp_path / "data", "--out", tmp_path / "out") == f"digest {digest_of(log)}"


def test_an_export_onto_its_own_log_leaves_it_as_it_is(file, tmp_path, capsys):
    before = file.read_bytes()
    link = tmp_path / "[link].jsonl"
    link.symlink_to(file)
    for out in (file, link):
        assert run("log", "export", file, out) == 0
        assert f"records in {out}" in capsys.readouterr().out
        assert (file.read_bytes(), link.is_symlink()) == (before, True)


def test_an_export_of_a_damaged_log_leaves_what_was_exported_before(log, tmp_path):
    with EmbeddedLogWriter(tmp_path / "data" / "events") as writer:
        writer.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in log])
    out = tmp_path / "good.jsonl"
    assert run("log", "export", tmp_path / "data", out) == 0
    before = out.read_bytes()
    (segment,) = (tmp_path / "data" / "events").glob("*.log")
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert run("log", "export", tmp_path / "data", out) == 2
    assert out.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["data", "good.jsonl"]


def test_an_export_into_a_pipe_is_written_there(file):
    command = [sys.executable, "-m", "streaming.cli", "log", "export", file, "/dev/stdout"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert done.stdout.startswith(file.read_bytes())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device is Linux's")
def test_an_export_that_has_no_room_names_its_file(file, capsys):
    assert run("log", "export", file, "/dev/full") == 1
    assert "/dev/full: No space left on device" in capsys.readouterr().err


def test_an_interrupted_replay_goes_on(file, log, tmp_path, replay, monkeypatch):
    """Killed after a batch was written and before the machines were saved, twice."""
    monkeypatch.setattr(local, "_SAVE_EVERY_S", 0.0)
    fold = fold_batch
    for batches in (2, 3):
        left = iter(range(batches))

        def killed(*arguments, left=left):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return fold(*arguments)

        monkeypatch.setattr(folding, "fold_batch", killed)
        assert run("replay", "--local", file, "--batch", 9, "--out", tmp_path / "out") == 130
    monkeypatch.setattr(folding, "fold_batch", fold)
    assert replay(file, "--batch", 9, "--out", tmp_path / "out") == f"digest {digest_of(log)}"


def test_decisions_of_a_batch_whose_machines_were_not_saved_are_not_written_twice(
    file, log, tmp_path, replay
):
    replay(file, "--until", 20, "--out", tmp_path / "out")
    machines = (tmp_path / "out" / "machines.parquet").read_bytes()
    replay(file, "--until", 50, "--out", tmp_path / "out")
    (tmp_path / "out" / "machines.parquet").write_bytes(machines)
    assert replay(file, "--out", tmp_path / "out") == f"digest {digest_of(log)}"


def test_a_replay_goes_on_from_exported_machines_in_other_slots(file, log, tmp_path, replay):
    replay(file, "--until", 30, "--slots", 4, "--out", tmp_path / "head")
    start = ["--from-checkpoint", tmp_path / "head" / "machines.parquet"]
    tail = Digest()
    tail.update(one for one in fold_log(log, 1)[1] if one.offset >= 30)
    found = replay(file, *start, "--slots", 16, "--out", tmp_path / "tail")
    assert found == f"digest {tail.hexdigest()}"


def test_the_seed_of_hashes_does_not_change_the_digest(file, log, tmp_path):
    said = set()
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "streaming.cli", "replay", file, "--local"]
        done = subprocess.run(
            [*command, "--out", tmp_path / seed],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        said.add(done.stdout.splitlines()[-1])
    assert said == {f"digest {digest_of(log)}"}


def test_a_what_if_is_shown_as_a_difference(tmp_path, replay, capsys):
    file = written(unavailable_partition(), tmp_path / "events.jsonl")
    replay(file, "--out", tmp_path / "a")
    what_if = ["--set", "unclean.leader.election.enable=true"]
    replay(file, *what_if, "--out", tmp_path / "b")
    assert run("diff", tmp_path / "a", tmp_path / "a") == 0
    assert capsys.readouterr().out == "no difference\n"
    assert run("diff", tmp_path / "a", tmp_path / "b") == 1
    assert re.search(r"\d differences: ", capsys.readouterr().out)
    assert run("diff", "--json", tmp_path / "a", tmp_path / "b") == 1
    first, *others = map(orjson.loads, capsys.readouterr().out.splitlines())
    assert (first["kind"], first["subject"]) == ("change_partitions", "t-0")
    assert {"leader", "rule"} < set(first["fields"])
    assert (first["left"]["rule"], first["right"]["rule"]) == ("leader_lost", "unclean_elected")
    assert (first["left"]["leader"], first["right"]["leader"]) == (-1, 2)
    assert {one["kind"] for one in others} == {"refuse_transition"}


def test_a_what_if_holds_for_machines_to_go_on_from(tmp_path, replay, capsys):
    """Elected is before the replayed range; broker 1, the whole ISR, dies in it."""
    file = written(unavailable_partition(), tmp_path / "events.jsonl")
    replay(file, "--until", 4, "--out", tmp_path / "head")
    tail = [file, "--from-checkpoint", tmp_path / "head" / "machines.parquet"]
    replay(*tail, "--out", tmp_path / "a")
    what_if = [*tail, "--set", "unclean.leader.election.enable=true", "--out", tmp_path / "b"]
    digest = replay(*what_if)
    assert replay(*what_if) == digest, "again: nothing to do"
    assert run("diff", "--json", tmp_path / "a", tmp_path / "b") == 1
    first, *_ = map(orjson.loads, capsys.readouterr().out.splitlines())
    assert (first["left"]["rule"], first["right"]["rule"]) == ("leader_lost", "unclean_elected")


def test_what_is_piped_is_one_whole_line_for_each_difference(tmp_path, capsys):
    for side, value in (("a", 1), ("b", 2)):
        body = {"group": "g" * 200, "value": value}
        record = NewRecord("change_group", "3:0", orjson.dumps(body), 5)
        with EmbeddedLogWriter(tmp_path / side) as writer:
            writer.append([record])
    assert run("diff", tmp_path / "a", tmp_path / "b") == 1
    head, row, counted = capsys.readouterr().out.splitlines()
    assert head.split() == ["event", "kind", "subject", "field", "A", "B"]
    assert row.split() == ["3", "change_group", "g" * 200, "value", "1", "2"]
    assert counted == "1 differences: change_group 1"


def test_what_only_one_side_has_folded_is_no_difference(file, log, tmp_path, replay, capsys):
    replay(file, "--out", tmp_path / "whole")
    replay(file, "--until", 20, "--out", tmp_path / "head")
    start = ["--from-checkpoint", tmp_path / "head" / "machines.parquet"]
    replay(file, *start, "--out", tmp_path / "tail")
    replay(file, *start, "--until", 40, "--out", tmp_path / "middle")
    decided = [one.offset for one in fold_log(log, 1)[1]]
    for part, events in (("head", range(20)), ("tail", range(20, 99)), ("middle", range(20, 40))):
        assert run("diff", tmp_path / "whole", tmp_path / part) == 0
        out, err = capsys.readouterr()
        left_out = sum(offset not in events for offset in decided)
        assert out == "no difference\n"
        assert f"decisions left out: {left_out} of A; A and B both cover events" in err
    assert run("diff", tmp_path / "head", tmp_path / "tail") == 2
    assert "nothing can be compared: A covers events " in capsys.readouterr().err


def test_what_is_decided_about_the_last_event_is_compared_where_both_have_folded_it(
    tmp_path, replay
):
    """A has no record about it; how far it has folded is in its machines."""
    file = written(unavailable_partition(), tmp_path / "events.jsonl")
    for out, end in (("a", 4), ("b", 5)):
        replay(file, "--until", end, "--out", tmp_path / out)
    assert run("diff", tmp_path / "a", tmp_path / "b") == 0
    machines = (tmp_path / "b" / "machines.parquet").read_bytes()
    (tmp_path / "a" / "machines.parquet").write_bytes(machines)
    assert run("diff", tmp_path / "a", tmp_path / "b") == 1


def test_trouble_is_no_difference(file, tmp_path, replay, capsys, monkeypatch):
    replay(file, "--out", tmp_path / "a")
    (tmp_path / "empty").mkdir()
    for other, said in (("nowhere", "no such log"), ("empty", "log"), (file, "is not an id")):
        assert run("diff", tmp_path / "a", tmp_path / other) == 2
        assert said in capsys.readouterr().err

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("streaming.log.recorded.open_log", refused)
    assert run("diff", tmp_path / "a", tmp_path / "a") == 2
    assert "Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "slots=3"], "--set slots = '3': no decision of a replay depends on it"),
        (["--until", "9999"], "--until 9999: allowed are offsets from 0 to"),
        (["--slots", "3"], "slots = 8, now it is 3; choose another folder"),
        (["--until", "5"], "has folded up to"),
        (["--from-checkpoint", "nowhere"], "nowhere: there is no checkpoint"),
    ],
)
def test_what_is_wrong_is_said(file, tmp_path, capsys, options, said):
    assert run("replay", file, "--local", "--out", tmp_path / "out") == 0
    assert run("replay", file, "--local", "--out", tmp_path / "out", *options) == 2
    assert said in capsys.readouterr().err.replace("\n", " ")


def test_a_log_without_events_is_told_of(tmp_path, capsys):
    """A digest over nothing says nothing."""
    empty = written([], tmp_path / "empty.jsonl")
    assert run("replay", empty, "--local", "--out", tmp_path / "out") == 0
    assert "there are no events to fold up to offset 0" in capsys.readouterr().err


def test_a_folder_with_something_else_is_left_alone(file, tmp_path, capsys):
    assert run("replay", file, "--local", "--out", tmp_path) == 2
    assert "is not empty and holds no replay" in capsys.readouterr().err


def test_a_replay_of_another_log_does_not_go_on(file, log, tmp_path, replay, capsys):
    """Its digest would be that of neither."""
    replay(file, "--until", 20, "--out", tmp_path / "out")
    for other in ([replace(one, time_ms=one.time_ms + 1) for one in log], log[:9]):
        written(other, file)
        assert run("replay", "--local", file, "--out", tmp_path / "out") == 2
        assert "it is from a replay of another log" in capsys.readouterr().err.replace("\n", " ")
    written(log, file)
    assert replay(file, "--out", tmp_path / "out") == f"digest {digest_of(log)}"


def test_mode_replay_sends_to_the_command(capsys):
    assert run("front", "--set", "mode=replay") == 2
    assert "helmstream replay LOG --out FOLDER" in capsys.readouterr().err


def test_machines_that_the_log_does_not_follow_on_are_refused(file, tmp_path, replay, capsys):
    replay(file, "--until", 30, "--out", tmp_path / "head")
    lines = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text("".join(lines[31:]), "utf-8")
    start = ["--from-checkpoint", tmp_path / "head" / "machines.parquet"]
    assert run("replay", "--local", file, *start, "--out", tmp_path / "tail") == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert "have folded up to 30, the log is to be folded from 31 to" in said
    assert run("replay", "--local", file, "--out", tmp_path / "without") == 0
    assert "the log starts at offset 31" in capsys.readouterr().err
