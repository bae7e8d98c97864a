"""Which events a decision log has the decisions about, and which two of them both have.

Not every event has decisions, so a log alone only shows the first and the last that has; a folder
also tells how far its machines have folded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from checkpoints.snapshot import snapshot_offset
from state.merge import MergedDecision
from streaming.checkpoint_tools.snapshots import MACHINES_FILE
from streaming.errors import HelmstreamError
from streaming.log.decision_reader import OpenDecisions
from streaming.log.location import LogLocation
from streaming.paths import DataDir
from streaming.replay.plan import made_with_of


class NothingInCommon(HelmstreamError):
    """Two decision logs about different events."""

    exit_code = 2


class CommonEvents:
    """The events that two decision logs, A and B, both cover; counts what is outside."""

    def __init__(self, left: range, right: range) -> None:
        """Take what each covers; raises NothingInCommon, unless neither covers anything."""
        self.events = range(max(left.start, right.start), min(left.stop, right.stop))
        self._left_out: Counter[str] = Counter()
        if not self.events and (left or right):
            raise NothingInCommon(
                f"nothing can be compared: A covers {_said(left)}, B {_said(right)}"
            )

    def of(self, side: str, decisions: Iterable[MergedDecision]) -> Iterator[MergedDecision]:
        """Yield the decisions about common events of side A or B."""
        for one in decisions:
            if one.offset in self.events:
                yield one
            else:
                self._left_out[side] += 1

    def remark(self) -> str:
        """Say what was left out so far; "" when it is nothing."""
        if not self._left_out:
            return ""
        counts = ", ".join(f"{count} of {side}" for side, count in sorted(self._left_out.items()))
        return f"decisions left out: {counts}; A and B both cover {_said(self.events)}"


def _said(events: range) -> str:
    return f"events {events.start} to {events.stop - 1}" if events else "no event"


def covered_events(where: LogLocation, log: OpenDecisions) -> range:
    """Return the events about which all decisions are in a log; empty where it shows none.

    where: what was given as the log. The first event of a log whose beginning retention has cut off
    may have lost a part of its decisions, and does not count then.
    """
    ends = log.ends()
    first, end = _told_by(where)
    if ends is not None:
        earliest, latest = ends
        first = earliest.event_offset + (earliest.ordinal > 0) if first is None else first
        end = latest.event_offset + 1 if end is None else end
    return range(first or 0, end or 0)


def _told_by(where: LogLocation) -> tuple[int | None, int | None]:
    """Return from which event on and up to which a folder says its machines have folded."""
    if not isinstance(where, Path) or not where.is_dir():
        return None, None
    first, end = None, None
    machines = where / MACHINES_FILE
    if made_with := made_with_of(where):
        first = made_with.get("from_offset")
    if machines.is_file():
        end = snapshot_offset(machines)
    elif (DataDir(where).checkpoint / "commits").is_dir():
        from checkpoints.read import folded_until  # noqa: PLC0415 - it needs Spark

        end = folded_until(DataDir(where).checkpoint)
    return first, end
