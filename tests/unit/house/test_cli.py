"""The command line: help for everything, clear errors with exit codes, no tracebacks."""

from __future__ import annotations

import errno
import io
import re
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import orjson
import pytest
from kazoo.handlers.threading import KazooTimeoutError
from rich.console import Console

from checkpoints.layout import CheckpointMismatch
from streaming.cli import app, main
from streaming.commands.frame import expected_exit_code, run_framed
from streaming.embedded.ivy import ArtifactsUnavailable
from streaming.embedded.java import JavaMissing, JavaTooOld
from streaming.embedded.ports import ServerPortTaken
from streaming.embedded.process import ChildDied, NotReady
from streaming.embedded.spark_jars import SparkJarsMissing
from streaming.errors import ConfigurationError, NoZooKeeper, PortTaken
from streaming.log.api import NewRecord
from streaming.log.embedded import CorruptLog, EmbeddedLogWriter
from streaming.zk.errors import AuthenticationFailed
from tests.unit.house.commands import commands_of

COMMANDS = commands_of(app)
EVERYWHERE = ["--set", "gateway.host=0.0.0.0"]


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data folder with three events, one decision that is JSON and one that is not."""
    with EmbeddedLogWriter(tmp_path / "events") as writer:
        writer.append([NewRecord("topic_observed", f"t{i}", b'{"i":%d}' % i) for i in range(3)])
    with EmbeddedLogWriter(tmp_path / "decisions") as writer:
        writer.append([NewRecord("elect_leader", "0:0", b"{}", 7)])
        writer.append([NewRecord("elect_leader", "1:0", b"\x01\x02", 8)])
    return tmp_path


def lines(text: str) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("command", [[], *([name] for name in sorted(COMMANDS))])
def test_help_is_there(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*command, "--help") == 0
    assert "Usage: helmstream" in capsys.readouterr().out


def test_every_command_and_every_option_has_a_help_text() -> None:
    for name, command in COMMANDS.items():
        assert command.help, name
        for option in command.params:
            assert option.help, f"{name} {option.opts}"


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"helmstream {version('helmstream')}\n"


def test_help_does_not_load_spark() -> None:
    code = (
        "import sys, streaming.cli; sys.exit('pyspark' in sys.modules or 'pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_tap_prints_decisions(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tap", "--no-follow", "--data-dir", data_dir) == 0
    first, second = lines(capsys.readouterr().out)
    wanted = {"offset": 0, "time_ms": 7, "kind": "elect_leader", "key": "0:0", "payload": {}}
    assert first == wanted
    assert second["payload_base64"] == "AQI="


def test_tap_resumes_at_an_offset(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tap", "--events", "--no-follow", "--from", 2, "--data-dir", data_dir) == 0
    assert [line["payload"] for line in lines(capsys.readouterr().out)] == [{"i": 2}]


def test_tap_from_the_end_prints_nothing(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("tap", "--events", "--no-follow", "--from", "end", "--data-dir", data_dir) == 0
    assert capsys.readouterr().out == ""


def test_tap_follows_what_is_appended_later(data_dir: Path) -> None:
    command = [sys.executable, "-m", "streaming.cli", "tap", "--events", "--from", "2"]
    with subprocess.Popen(
        [*command, "--data-dir", str(data_dir)], stdout=subprocess.PIPE, text=True
    ) as tapping:
        try:
            assert tapping.stdout is not None
            assert orjson.loads(tapping.stdout.readline())["offset"] == 2
            with EmbeddedLogWriter(data_dir / "events") as writer:
                writer.append([NewRecord("topic_removed", "t0", b"{}")])
            assert orjson.loads(tapping.stdout.readline())["kind"] == "topic_removed"
        finally:
            tapping.kill()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["tap", "--events", "--outcomes"], 2, "two logs"),
        (["tap", "--events", "--no-follow", "--from", "minus"], 2, "start, end"),
        (["tap", "--events", "--no-follow", "--from", "17"], 1, "offset 17"),
        (["tap", "--outcomes", "--no-follow"], 1, "holds no log"),
        (["tap", "--set", "controler.id=3"], 2, "did you mean controller.id?"),
        (["status"], 1, "no helmstream is running"),
        (["front"], 2, "zookeeper.connect is empty"),
        (["job"], 2, "zookeeper.connect is empty"),
        (["front", "--set", "zookeeper.connect=z:1", *EVERYWHERE], 2, "gateway.host = '0.0.0.0'"),
        (["run", "--zookeeper", "z:1", *EVERYWHERE], 2, "gateway.host = '0.0.0.0'"),
        (["run", "--zookeeper", ""], 2, "--zookeeper names no cluster"),
        (["run", "--zookeeper", " "], 2, "--zookeeper names no cluster"),
        (["shadow", "--zookeeper", ""], 2, "--zookeeper names no cluster"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str],
    code: int,
    said: str,
    data_dir: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(*arguments, "--data-dir", data_dir) == code
    complaint = capsys.readouterr().err
    assert complaint.startswith("error: ")
    assert said in complaint
    assert "Traceback" not in complaint


@pytest.mark.parametrize("command", ["run", "front", "job"])
def test_a_role_refuses_a_shadows_folder(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shadow.mark").touch()
    assert run(command, "--data-dir", tmp_path) == 2
    assert "in which a shadow has run" in capsys.readouterr().err


def test_a_shadow_refuses_a_controllers_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.lock").touch()
    with socket.create_server(("127.0.0.1", 0)) as zookeeper:
        connect = f"127.0.0.1:{zookeeper.getsockname()[1]}"
        assert run("shadow", "--local", "--zookeeper", connect, "--data-dir", tmp_path) == 2
    assert "(it has job.lock)" in capsys.readouterr().err


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("tapp") == 2
    assert "tap" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError("x"), 2),
        (JavaMissing("PATH"), 3),
        (JavaTooOld(Path("/usr/bin/java"), "11.0.2"), 3),
        (SparkJarsMissing("the package pyspark"), 3),
        (ArtifactsUnavailable("kafka-3.9.2", "no network", []), 4),
        (PortTaken("127.0.0.1:9190", "gateway.port"), 4),
        (ServerPortTaken("ZooKeeper", 2181), 4),
        (ChildDied("broker 1", 1, Path("broker.log")), 1),
        (NotReady("broker 1", 60.0, Path("broker.log")), 1),
        (OSError(errno.EADDRINUSE, "Address already in use"), 4),
        (NoZooKeeper("localhost:2181", "refused"), 4),
        (KazooTimeoutError("Connection time-out"), 4),
        (AuthenticationFailed("refused"), 4),
        (CheckpointMismatch("slots = 64, now it is 16"), 2),
        (CorruptLog("0.log", 36, 0, "segment header checksum differs"), 2),
        (OSError(errno.ENOSPC, "No space left on device"), 1),
        (OSError(errno.EIO, "Input/output error"), None),
        (ValueError("a fault of ours"), None),
    ],
)
def test_expected_errors_have_an_exit_code(error: Exception, code: int | None) -> None:
    assert expected_exit_code(error) == code


def test_a_message_is_printed_as_it_is() -> None:
    def fail() -> None:
        raise ConfigurationError("allowed: [bold]x[/bold] " + "long " * 40)

    out = io.StringIO()
    assert run_framed(fail, Console(file=out, width=40)) == 2
    assert re.fullmatch(r"error: allowed: \[bold\]x\[/bold\] (long )+\n", out.getvalue())


def test_who_prints_to_a_full_disk_hears_it() -> None:
    def fail() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    out = io.StringIO()
    assert run_framed(fail, Console(file=out, width=40)) == 1
    assert out.getvalue().startswith("error: what is printed, or a file, cannot be written: No sp")


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        run_framed(lambda: 1 / 0, Console(file=io.StringIO()))


def test_an_interrupt_ends_quietly() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    out = io.StringIO()
    assert run_framed(interrupt, Console(file=out)) == 130
    assert out.getvalue() == ""
