"""What a replay is to fold, and the folder it writes to.

The folder is laid out like a data folder: `decisions/`, and `checkpoint/` (Spark) or
`machines.parquet` (local) to go on from. `replay.json` says what it was made with, so that an
interrupted replay is only resumed as the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from checkpoints.durable import unfinished, write_whole
from checkpoints.snapshot import Snapshot
from checkpoints.what_if import Setting, under_settings
from state.routing import Layout
from streaming.checkpoint_tools.snapshots import MACHINES_FILE
from streaming.errors import ConfigurationError
from streaming.log.location import LogLocation
from streaming.paths import DataDir

_MADE_WITH = "replay.json"


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """A replay as asked for.

    end: one past the last event. batch: events folded at once. what_if: as events have it
    (`checkpoints.what_if.in_events`). start: the machines to go on from as they are, None for the
    log's own beginning.
    """

    log: LogLocation
    end: int
    batch: int
    layout: Layout
    local: bool
    what_if: Mapping[str, Setting]
    start: Snapshot | None
    out: DataDir

    @property
    def machines(self) -> Path:
        """Where a local replay keeps the machines."""
        return self.out.root / MACHINES_FILE

    def beginning(self) -> Snapshot | None:
        """Return the machines to go on from as they would be under the what-if."""
        if self.start is None:
            return None
        return replace(self.start, states=under_settings(self.start.states, self.what_if))

    def claim(self) -> None:
        """Make the folder this replay's, or find that it is.

        Raises ConfigurationError when it holds another replay or something else.
        """
        made_with = {
            "replay.format": 1,
            "log": str(self.log.resolve() if isinstance(self.log, Path) else self.log),
            "engine": "local" if self.local else "spark",
            "slots": self.layout.slots,
            "group.slots": self.layout.group_slots,
            "set": dict(sorted(self.what_if.items())),
            "from_offset": self.start.offset if self.start else None,
        }
        root = self.out.root
        found = made_with_of(root)
        if found is None:
            _note(root, made_with)
            return
        for key, value in made_with.items():
            if found.get(key) != value:
                raise ConfigurationError(
                    f"--out {root} holds a replay with {key} = {found.get(key)}, "
                    f"now it is {value}; choose another folder"
                )


def made_with_of(root: Path) -> dict[str, Any] | None:
    """Return what the replay in a folder was made with, None where there is none.

    Raises ConfigurationError when that cannot be read.
    """
    path = root / _MADE_WITH
    if not path.is_file():
        return None
    try:
        return dict(orjson.loads(path.read_bytes()))
    except (ValueError, TypeError) as error:
        raise ConfigurationError(
            f"{path} is damaged, and tells no more what its replay was made with ({error}); delete"
            " the folder, and replay into it anew"
        ) from error


def _note(root: Path, made_with: Mapping[str, Any]) -> None:
    path = root / _MADE_WITH
    if root.exists() and any(one != unfinished(path) for one in root.iterdir()):
        raise ConfigurationError(f"--out {root} is not empty and holds no replay")
    root.mkdir(parents=True, exist_ok=True)
    write_whole(path, orjson.dumps(made_with, option=orjson.OPT_INDENT_2))
