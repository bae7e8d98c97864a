"""Everyday mistakes of an operator end in one line that names what is meant, and no traceback."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from streaming.cli import main
from streaming.commands.frame import run_framed
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.writer_lock import WriterLock

CLUSTER = ["--set", "zookeeper.connect=127.0.0.1:1"]


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


IN_A_TOPIC = (
    "events holds no log segments, only a lock; if the log is in a topic, set event.log.url"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder: a file, a data folder with three events, one whose event log is in a
    topic, and a damaged replay.
    """
    monkeypatch.chdir(tmp_path)
    # A front sets its garbage collector for good; this process goes on, and hypothesis needs it.
    monkeypatch.setattr("streaming.front.main.collect_each_once", lambda: None)
    Path("FILE").touch()
    with EmbeddedLogWriter(Path("data/events")) as writer:
        writer.append([NewRecord("topic_observed", f"t{i}", b"{}") for i in range(3)])
    Path("cut").mkdir()
    Path("cut/replay.json").write_text('{"replay.form')
    WriterLock(Path("elsewhere/events")).close()
    with EmbeddedLogWriter(Path("damaged/events")) as writer:
        writer.append([NewRecord("topic_observed", "t", b"{}")])
    (log,) = Path("damaged/events").glob("*.log")
    log.write_bytes(log.read_bytes()[:-1])
    with EmbeddedLogWriter(Path("cut/decisions")) as writer:
        writer.append([NewRecord("change_group", "0:0", b"{}")])
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("tap --data-dir FILE", 1, "FILE/decisions: Not a directory"),
        ("explain t-0 --data-dir FILE", 1, "FILE/decisions: Not a directory"),
        ("front --data-dir FILE", 2, "FILE is not a folder; allowed is a folder that"),
        ("front --data-dir FILE/x", 2, "FILE/x', but "),
        ("run --data-dir FILE", 2, "FILE is not a folder; allowed"),
        ("front --data-dir damaged", 2, "events/00000000000000000000.log: at byte 32, offset 0: "),
        ("checkpoint reslot --data-dir FILE", 2, "data.dir is 'FILE', but FILE is not a folder"),
        ("checkpoint rebuild --data-dir FILE", 2, "data.dir is 'FILE', but FILE is not a folder"),
        ("replay data --local --out FILE", 1, "FILE: Not a directory"),
        ("replay data --local --out cut", 2, "cut/replay.json is damaged"),
        ("diff cut cut", 2, "cut/replay.json is damaged"),
        ("tap --events --data-dir elsewhere", 1, IN_A_TOPIC),
        ("tap elsewhere --events", 1, IN_A_TOPIC),
        ("replay elsewhere --local --out out", 1, IN_A_TOPIC),
        ("log export elsewhere out", 1, IN_A_TOPIC),
        ("log export cut/replay.json out", 2, "cut/replay.json line 1: not a record"),
        ("log export data no/such/x", 1, "no/such/x: No such file or directory"),
        ("log export data out --from 3 --until 1", 2, "--from 3 is after the end, which is offset"),
        ("log export data out --from 9", 2, "--from 9 is after the end, which is offset 3"),
    ],
)
def test_a_mistake_of_a_user_is_said_in_one_line(
    command: str, code: int, said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = CLUSTER if command.startswith(("front", "run")) else []
    assert run(*command.split(), *cluster) == code
    complaint = capsys.readouterr().err
    assert complaint.startswith("error: ")
    assert said in complaint
    assert complaint.count("\n") == 1
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("verify", 2, "checkpoint: there is no checkpoint"),
        ("reslot", 2, "new: there is no checkpoint"),
        ("import new", 2, "new: there is no checkpoint"),
        ("import machines.parquet", 1, "new/events holds no log segments"),
        ("rebuild", 1, "new/events holds no log segments"),
    ],
)
def test_a_checkpoint_of_nothing_is_refused_and_leaves_nothing(
    command: str, code: int, said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "machines.parquet").touch()
    (here / "new").mkdir()
    assert run("checkpoint", *command.split(), "--data-dir", "new") == code
    assert capsys.readouterr().err.endswith(f"{said}\n")
    assert not list((here / "new").iterdir())


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("shadow --zookeeper 127.0.0.1:1 --report data", "is a directory"),
        ("checkpoint export FILE --data-dir data", "is a file"),
    ],
)
def test_where_the_output_cannot_go_is_said_before_anything_starts(
    command: str, said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*command.split()) == 2
    assert said in capsys.readouterr().err


def test_a_checkpoint_is_not_rebuilt_while_the_front_runs_on(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with WriterLock(Path("data/events")):
        assert run("checkpoint", "rebuild", "--data-dir", "data") == 1
    said = capsys.readouterr().err
    assert f"the front has to be stopped too, not the job alone: {Path('data/events')} is" in said


def test_kinds_of_another_version_are_passed_over_by_a_diff(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side, kind in (("a", "of_a_later_version"), ("b", "of_another_one")):
        with EmbeddedLogWriter(tmp_path / side) as writer:
            writer.append([NewRecord("change_group", "0:0", b"{}"), NewRecord(kind, "0:1", b"?")])
    assert run("diff", tmp_path / "a", tmp_path / "b") == 0
    assert capsys.readouterr().out == "no difference\n"


def test_a_log_keeps_where_a_file_could_not_be_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = io.StringIO()
    with caplog.at_level(logging.INFO):
        code = run_framed((tmp_path / "file").read_bytes, Console(file=said))
    assert (code, said.getvalue()) == (1, f"error: {tmp_path}/file: No such file or directory\n")
    assert "Traceback" in caplog.text


def test_a_replay_says_whole_or_not_at_all_what_it_was_made_with(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that was killed before is no other one's folder."""
    Path("out").mkdir()
    Path("out/replay.json.tmp").write_text("{")
    assert run("replay", "data", "--local", "--out", "out") == 0
    assert sorted(one.name for one in Path("out").iterdir()) == [
        "decisions",
        "machines.parquet",
        "replay.json",
    ]
    assert orjson.loads(Path("out/replay.json").read_bytes())["replay.format"] == 1
