"""What `helmstream migration` prints, and what it ends with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
import pytest

from streaming.cli import main
from streaming.migration import run
from streaming.migration.findings import Finding, Weight
from streaming.migration.run import Found
from streaming.settings import Settings
from streaming.shadow.exit_codes import DIVERGED, INCOMPLETE

STOPS = Finding(Weight.STOPS, "broker 9", "it is [not] running", "start it")
CHANGES = Finding(Weight.CHANGES, "topics", "1 are being deleted (t)", "wait")
TO_DO = Finding(Weight.TO_DO, "broker 1", "is not set", "set it")

Migration = Callable[..., tuple[int, str]]


@pytest.fixture
def migration(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Migration:
    """Run the command on what was found; return its exit code and what it printed."""

    def migration(found: Found, *options: str) -> tuple[int, str]:
        asked: list[str] = []

        def look(settings: Settings, controllers: Sequence[Path]) -> Found:
            assert list(controllers) == [Path(one) for one in options if one.startswith("/")]
            asked.append(settings.zookeeper_connect)
            return found

        monkeypatch.setattr(run, "look", look)
        with pytest.raises(SystemExit) as ended:
            main(["migration", "--zookeeper", "zk:2181", *options])
        assert asked == ["zk:2181"]
        return int(ended.value.code or 0), capsys.readouterr().out

    return migration


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (Found(), 0),
        (Found([TO_DO]), 0),
        (Found([TO_DO, STOPS]), DIVERGED),
        (Found([CHANGES], ["broker 2: away"]), DIVERGED),
        (Found([TO_DO], ["broker 2: away"]), INCOMPLETE),
    ],
)
def test_the_exit_code_says_what_was_found(migration: Migration, found: Found, code: int) -> None:
    assert migration(found)[0] == code


def test_a_table_for_people(migration: Migration) -> None:
    _, printed = migration(Found([STOPS, TO_DO], ["broker 2: [away]"], begun=True))
    begun, head, stops, to_do, gap = printed.splitlines()
    assert begun == "the migration has begun: a KRaft controller controls the cluster"
    assert head.split() == ["weight", "where", "what", "remedy"]
    assert stops.split("  ")[0].strip() == "stops" and "it is [not] running" in stops
    assert to_do.split()[0] == "to_do"
    assert gap == "not looked at: broker 2: [away]"
    assert migration(Found())[1] == "nothing was found\n"


def test_controllers_may_be_looked_at(migration: Migration) -> None:
    files = ("/a.properties", "/b.properties")
    options = [word for file in files for word in ("--controller-config", file)]
    assert migration(Found(), *options)[0] == 0


def test_json_lines_for_programs(migration: Migration) -> None:
    lines = migration(Found([STOPS], ["away"]), "--json")[1].splitlines()
    first, last = map(orjson.loads, lines)
    assert first == {
        "weight": "stops",
        "where": "broker 9",
        "what": "it is [not] running",
        "remedy": "start it",
    }
    assert last == {"summary": {"findings": 1, "gaps": ["away"], "begun": False}}
