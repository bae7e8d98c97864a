"""The status is read from a real Unix socket, shown in full, and its absence is told in words."""

from __future__ import annotations

import io
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from streaming.cli import main
from streaming.commands.status import render_status
from streaming.errors import NotRunning
from streaming.paths import DataDir
from streaming.sockets.status_socket import NoStatus, fetch_status


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A folder with a short path: that of a Unix socket may not be long."""
    with tempfile.TemporaryDirectory(prefix="hs-") as folder:
        yield Path(folder)


def answer_once(data_dir: Path, answer: bytes) -> threading.Thread:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(DataDir(data_dir).status_socket))
    server.listen(1)
    server.settimeout(10)

    def serve() -> None:
        with server:
            connection, _ = server.accept()
            with connection:
                connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_a_large_answer_comes_whole(data_dir: Path) -> None:
    status = {"topics": {f"t{i}": list(range(20)) for i in range(2_000)}}
    serving = answer_once(data_dir, orjson.dumps(status))
    assert fetch_status(data_dir, timeout_s=10) == status
    serving.join(10)


@pytest.mark.parametrize("answer", [b"", b"{", b"[1]", b"\xff"])
def test_an_answer_that_is_no_status_is_named(data_dir: Path, answer: bytes) -> None:
    serving = answer_once(data_dir, answer)
    with pytest.raises(NoStatus, match=r"front\.sock"):
        fetch_status(data_dir, timeout_s=10)
    serving.join(10)


def test_no_front_is_told_with_where_and_what_to_do(monkeypatch, data_dir: Path) -> None:
    monkeypatch.chdir(data_dir)
    with pytest.raises(NotRunning, match=rf"data\.dir {data_dir}/\.here; .*helmstream run"):
        fetch_status(Path(".here"), timeout_s=10)


def test_a_shadows_folder_is_told_as_one(data_dir: Path) -> None:
    """`helmstream run` would refuse it."""
    DataDir(data_dir).shadow_mark.touch()
    with pytest.raises(NotRunning, match=r"is a shadow's folder, .* log/shadow\.log") as told:
        fetch_status(data_dir, timeout_s=10)
    assert "helmstream run" not in str(told.value)


def test_a_socket_left_by_a_dead_front_is_no_front(data_dir: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(DataDir(data_dir).status_socket))
    with pytest.raises(NotRunning):
        fetch_status(data_dir, timeout_s=10)


def test_a_front_that_does_not_answer_is_not_waited_for(data_dir: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(str(DataDir(data_dir).status_socket))
        silent.listen(1)
        with pytest.raises(NoStatus, match="timed out"):
            fetch_status(data_dir, timeout_s=0.05)


@pytest.mark.parametrize(
    ("options", "in_doubt", "wrong"),
    [
        ([], False, ""),
        ([], True, ""),
        (["--require", "loading"], False, ""),
        (["--require", "loading"], True, "ZooKeeper is out of reach: another controller may have"),
        (["--require", "active"], False, "the role is loading, not active"),
        (
            ["--require", "leader"],
            False,
            "the roles are waiting_for_job, claiming, loading, active",
        ),
    ],
)
def test_a_role_can_be_required(
    data_dir: Path,
    options: list[str],
    in_doubt: bool,
    wrong: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    serving = answer_once(data_dir, orjson.dumps({"role": "loading", "in_doubt": in_doubt}))
    with pytest.raises(SystemExit) as left:
        main(["status", "--data-dir", str(data_dir), *options])
    serving.join(10)
    printed = capsys.readouterr()
    assert (left.value.code or 0) == int(bool(wrong))
    assert "loading" in printed.out, "the status is shown all the same"
    assert wrong in printed.err.replace("\n", " ")


def test_the_table_shows_all_there_is() -> None:
    status = {"controller": {"epoch": 7, "held": True}, "mode": "active", "live": [1, 2], "x": None}
    out = io.StringIO()
    Console(width=80, file=out).print(render_status(status))
    shown = [line.split() for line in out.getvalue().splitlines()]
    assert shown == [
        ["what", "value"],
        ["controller.epoch", "7"],
        ["controller.held", "true"],
        ["mode", "active"],
        ["live", "[1,2]"],
        ["x", "null"],
    ]
