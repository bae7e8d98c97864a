"""A process of its own that does what it is asked: JSON lines on its stdin and stdout.

What is measured and what measures must not share an interpreter. A worker ends when its stdin does,
so it never outlives whoever started it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


class Worker:
    """`python -m module arguments` with its log in a file; for one thread."""

    def __init__(self, module: str, arguments: Sequence[str], log_path: Path) -> None:
        log_path.parent.mkdir(parents=True, exist_ok=True)
        self._log_path = log_path
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, do: str, **body: Any) -> Any:
        """Ask and wait; raises RuntimeError when the worker ended instead of answering."""
        self._process.stdin.write(json.dumps({"do": do, **body}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the worker ended, see {self._log_path}")
        return json.loads(answer)

    def close(self) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_answers() -> Callable[[Any], None]:
    """Return how a worker answers; whatever else prints to stdout goes to stderr from now on."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(body: Any) -> None:
        answers.write(json.dumps(body) + "\n")
        answers.flush()

    return answer


def serve(handlers: dict[str, Callable[..., Any]], answer: Callable[[Any], None]) -> None:
    """Answer what is asked until stdin ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        answer(handlers[asked.pop("do")](**asked))
