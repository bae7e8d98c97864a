"""What is missing on this machine is said before anything starts."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from streaming.checkpoint_tools.moves import job_stopped
from streaming.commands.roles import active_settings
from streaming.errors import ConfigurationError, NoZooKeeper, PortTaken
from streaming.paths import DataDir
from streaming.preflight import (
    check_bindable,
    check_data_dir,
    check_zookeeper,
    claim_for_shadow,
)

HOST = "127.0.0.1"


def test_a_process_that_decides_names_its_data_folder_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors of Spark work in folders of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("streaming.commands.roles.check_data_dir", lambda _: None)
    found = active_settings(None, None, Path("data"))
    assert found.data_dir == tmp_path / "data"


def test_a_data_folder_has_room_for_its_sockets() -> None:
    with tempfile.TemporaryDirectory() as short:
        longest = Path(short)
        while True:
            try:
                check_data_dir(longest)
            except ConfigurationError as error:
                assert "data.dir" in str(error) and str(longest) in str(error)
                break
            longest = longest.with_name(f"{longest.name}x")
        longest = longest.with_name(longest.name[:-1])
        longest.mkdir()
        try:
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(DataDir(longest).control_socket))
        finally:
            shutil.rmtree(longest)


@pytest.mark.parametrize("check", [check_data_dir, claim_for_shadow])
def test_a_data_folder_that_cannot_be_written_or_made_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: Callable[[Path], None]
) -> None:
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    with pytest.raises(ConfigurationError, match=r"'.*/nowhere/a', but .*/nowhere is not a folder"):
        check(tmp_path / "nowhere" / "a")
    monkeypatch.setattr(os, "access", lambda path, _: path != tmp_path)  # root may do everything
    with pytest.raises(ConfigurationError, match=rf"'.*/a/b', but {tmp_path} cannot be written"):
        check(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()


def test_a_shadows_folder_is_never_a_controllers(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    claim_for_shadow(folder)
    claim_for_shadow(folder)  # it may run again
    with pytest.raises(ConfigurationError, match=r"'.*/new', in which a shadow has run: .*delete"):
        check_data_dir(folder)


def test_a_shadows_folder_stays_its_own_when_its_checkpoint_was_worked_on(tmp_path: Path) -> None:
    claim_for_shadow(tmp_path)
    with job_stopped(DataDir(tmp_path)):  # as `checkpoint reslot` does
        pass
    assert DataDir(tmp_path).job_lock.exists()
    claim_for_shadow(tmp_path)


@pytest.mark.parametrize("used", ["outcomes", "job_lock"])
def test_a_controllers_folder_is_never_a_shadows(tmp_path: Path, used: str) -> None:
    getattr(DataDir(tmp_path), used).touch()
    with pytest.raises(ConfigurationError, match=r"which is a controller's .*--data-dir"):
        claim_for_shadow(tmp_path)
    check_data_dir(tmp_path)


@pytest.mark.parametrize("who", ["gateway", "metrics"])
def test_a_taken_port_is_named_with_its_setting(who: str) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=rf"{HOST}:{port} .* {who}\.port"):
            check_bindable(HOST, port, who)


@pytest.mark.parametrize("who", ["gateway", "metrics"])
def test_an_address_of_another_machine_is_refused(who: str) -> None:
    # It is for documentation (RFC 5737), and nobody's.
    with pytest.raises(ConfigurationError, match=rf"{who}\.host = '192.0.2.1' cannot be bound"):
        check_bindable("192.0.2.1", 0, who)


def test_a_free_port_passes_and_stays_free() -> None:
    with socket.create_server((HOST, 0)) as was_taken:
        port = was_taken.getsockname()[1]
    check_bindable(HOST, port)
    check_bindable(HOST, port)
    check_bindable(HOST, 0)


def test_one_server_of_several_is_enough() -> None:
    with socket.create_server((HOST, 0)) as server, bound_but_deaf() as deaf:
        listening = server.getsockname()[1]
        check_zookeeper(f"{HOST}:{deaf.getsockname()[1]},{HOST}:{listening}/kafka", 10_000)


def test_a_server_may_have_an_address_of_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[tuple[str, int]] = []

    def connection(place: tuple[str, int], timeout_s: float) -> nullcontext[None]:
        reached.append(place)
        return nullcontext()

    monkeypatch.setattr(socket, "create_connection", connection)
    check_zookeeper("[::1]:2181,zk:2182/kafka", 1_000)
    assert reached == [("::1", 2181)]


def test_no_server_is_told_with_each_reason() -> None:
    with bound_but_deaf() as deaf:
        port = deaf.getsockname()[1]
        with pytest.raises(NoZooKeeper, match=f"{HOST}:{port}: Connection refused"):
            check_zookeeper(f"{HOST}:{port}", 10_000)


def bound_but_deaf() -> socket.socket:
    """A socket that holds a port and refuses connections to it."""
    deaf = socket.socket()
    deaf.bind((HOST, 0))
    return deaf
