"""What `helmstream kraft-snapshot` prints, and what it ends with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from streaming.cli import main
from streaming.errors import ConfigurationError
from streaming.kraft_snapshot import run
from streaming.kraft_snapshot.run import Written
from streaming.settings import Settings
from streaming.shadow.exit_codes import INCOMPLETE

FILE = Path("/kraft/file")


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """What was asked for; what is written then has a gap if the folder is called so."""
    given: list[tuple[str, Path]] = []

    def written(settings: Settings, folder: Path, time_ms: int, secrets: Sequence[str]) -> Written:
        assert time_ms > 0
        assert not secrets
        given.append((settings.zookeeper_connect, folder))
        gaps, brokers = (["/config: [x]"], [1, 2]) if folder.name == "gap" else ([], [])
        return Written(FILE, 2, 9, 4, brokers, gaps)

    monkeypatch.setattr(run, "write_kraft_snapshot", written)
    return given


def ended_with(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["kraft-snapshot", "--zookeeper", "zk:2181", *arguments])
    return int(ended.value.code or 0)


def test_a_table_for_people(
    given: list[tuple[str, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended_with("/kraft") == 0
    assert given == [("zk:2181", Path("/kraft"))]
    names, values = capsys.readouterr().out.splitlines()
    assert names.split() == ["path", "topics", "partitions", "others", "running_brokers"]
    assert values.split() == [str(FILE), "2", "9", "4", "[]"]


def test_what_is_not_in_it_is_told(
    given: list[tuple[str, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended_with("/gap") == INCOMPLETE
    assert capsys.readouterr().out.splitlines()[2:] == [
        "brokers are running: what changes from now on is not in it",
        "left out: /config: [x]",
    ]


@pytest.mark.usefixtures("given")
def test_a_line_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_with("/gap", "--json") == INCOMPLETE
    assert orjson.loads(capsys.readouterr().out) == {
        "path": str(FILE),
        "topics": 2,
        "partitions": 9,
        "others": 4,
        "running_brokers": [1, 2],
        "gaps": ["/config: [x]"],
    }


def test_secrets_are_read_from_brokers_files(tmp_path: Path) -> None:
    new, old, none = (tmp_path / name for name in ("new", "old", "none"))
    new.write_text("password.encoder.secret=one\nzookeeper.connect=zk\n")
    old.write_text("password.encoder.old.secret=two\npassword.encoder.secret = three\n")
    none.write_text("password.encoder.secret=\n")
    assert run.secrets_of([new, old]) == ["one", "three", "two"]
    with pytest.raises(ConfigurationError, match=f"{none}: password.encoder.secret is not set"):
        run.secrets_of([new, none])
