"""The report: what was compared, one JSON object a line, the summary last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from streaming.log.api import LogError, LogReader
from streaming.shadow.verdicts import Status, Tally, Verdict

_RECENT = 99


class Report:
    """Writes verdicts to a file as they come, and counts them.

    recent: the last ones that did not simply agree; noted: how many there were.

    What agreed is only counted unless `all_of_them` is set. Each line names the first event whose
    outcome differs, out of the event log.
    """

    def __init__(self, path: Path, events: LogReader, *, all_of_them: bool) -> None:
        """Start the file anew."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.tally = Tally()
        self.recent: list[Verdict] = []
        self.noted = 0
        self._file = path.open("wb")
        self._events = events
        self._all = all_of_them

    def add(self, verdict: Verdict, now_ms: int) -> None:
        """Count a verdict and write it down."""
        self.tally.add(verdict)
        quiet = verdict.status in {Status.AGREED, Status.PASSED_OVER}
        if not quiet:
            self.recent = [*self.recent[-_RECENT:], verdict]
            self.noted += 1
        if self._all or not quiet:
            self._write(verdict.as_json(time_ms=now_ms, input=self._input(verdict.offset)))

    def close(self, **more: Any) -> dict[str, Any]:
        """Write the summary as the last line and return it."""
        summary = {**self.tally.as_json(), **more}
        self._write({"summary": summary})
        self._file.close()
        return summary

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        self._file.flush()

    def _input(self, offset: int | None) -> dict[str, Any] | None:
        if offset is None:
            return None
        try:
            record = next(iter(self._events.read(offset, offset + 1)))
        except LogError:
            return {"offset": offset}
        return {"offset": offset, "kind": record.kind, "key": record.key}
