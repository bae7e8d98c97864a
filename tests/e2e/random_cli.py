"""What the programs that perform random operations have in common on the command line."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Say = Callable[[str], None]


def parser_of(description: str, operations: int) -> argparse.ArgumentParser:
    """Return the options that all have; operations: how many by default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operations", type=int, default=operations)
    parser.add_argument("--folder", type=Path, help="where everything goes; default: a new one")
    parser.add_argument("--protocol", default="", help="of brokers; they are of --versions then")
    parser.add_argument("--versions", nargs="+", default=[], help="such as 2.8.2 3.9.2")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return what is given, and end where it makes no sense."""
    given = parser.parse_args()
    if bool(given.protocol) != bool(given.versions):
        parser.error("--protocol and --versions need one another")
    return given


@contextmanager
def telling(given: argparse.Namespace) -> Iterator[tuple[Path, Say]]:
    """Return the folder of a run, which stays, and what tells there and on the terminal what is
    done.
    """
    folder = given.folder or Path(tempfile.mkdtemp(prefix="helmstream-random-"))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "operations.txt").open("w", encoding="utf-8") as notes:

        def say(line: str) -> None:
            line = f"{time.strftime('%H:%M:%S')} {line}"
            notes.write(f"{line}\n")
            notes.flush()
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

        say(f"seed {given.seed}, {given.operations} operations, in {folder}")
        yield folder, say
