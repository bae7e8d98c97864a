"""Which brokers have not confirmed everything that was queued for them, kept across a crash.

A broker is marked before anything is sent and cleared when it has answered all of it. After a
restart the marked ones are sent everything again; that costs traffic and nothing else, since
brokers ignore what they know by epoch. From which event on they may have missed something says
where `missed_removals` has to look; as a broker may hang for days in which next to nothing is
removed, the events on which something was are kept beside the marks.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from checkpoints.durable import write_whole

_REMOVALS_KEPT = 4_096
"""Where there are more, the oldest are looked for."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a broker has to confirm: what was decided on the events [since, until)."""

    since: int
    until: int

    def __or__(self, other: Mark) -> Mark:
        """Return the mark of both."""
        return Mark(min(self.since, other.since), max(self.until, other.until))


class UnconfirmedBrokers:
    """The marked brokers, mirrored in a small file: {"pending": {broker: [since, until]},
    "removals": [event], "removals_from": event}. Of the events from `removals_from` on, something
    was removed on those of the list only.
    """

    def __init__(self, path: Path) -> None:
        """Read the file; one that is missing or broken leaves it unknown who is marked."""
        self._path = path
        self._lock = threading.Lock()
        self._known = True
        self._marked: dict[int, Mark] = {}
        self._removals: list[int] = []
        self._removals_from = 0
        try:
            self._load(orjson.loads(path.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._marked.clear()
            self._known = False

    def _load(self, stored: dict[str, Any]) -> None:
        marks = {int(broker): Mark(*mark) for broker, mark in stored["pending"].items()}
        # A file may be of a version that kept marks alone.
        until = max((mark.until for mark in marks.values()), default=0)
        self._removals_from = int(stored.get("removals_from", until))
        self._removals = [int(one) for one in stored.get("removals", ())]
        self._marked = marks

    def marked(self, broker_id: int) -> bool:
        """Return whether a broker may have missed something."""
        with self._lock:
            return self._is_marked(broker_id)

    def since(self, broker_ids: Iterable[int]) -> int | None:
        """Return the first event about which one of these brokers may have missed something, 0 when
        that is not known; None when none of them is marked.
        """
        with self._lock:
            marked = filter(self._is_marked, broker_ids)
            starts = (self._marked[one].since if self._known else 0 for one in marked)
            return min(starts, default=None)

    def removed_on(self, events: range) -> list[range]:
        """Return those of some events on which something may have been removed, in order."""
        with self._lock:
            listed = max(events.start, self._removals_from) if self._known else events.stop
            unlisted = range(events.start, min(listed, events.stop))
            single = [range(one, one + 1) for one in self._removals if listed <= one < events.stop]
            return [unlisted, *single] if unlisted else single

    def mark(
        self,
        broker_ids: Iterable[int],
        start_offset: int,
        end_offset: int,
        removals: Iterable[int] = (),
    ) -> None:
        """Mark brokers durably, for events from start_offset on, until they confirm up to
        end_offset. Who else is marked is known from the first broker on. removals: on which of the
        events something is removed.
        """
        with self._lock:
            # What was missed before nobody knew stays missed until it is confirmed.
            fresh = Mark(start_offset if self._known else 0, end_offset)
            marks = {broker: fresh | self._marked.get(broker, fresh) for broker in broker_ids}
            news = any(
                broker not in self._marked or mark.since < self._marked[broker].since
                for broker, mark in marks.items()
            )
            self._marked.update(marks)
            removed = self._list(removals, start_offset)
            if news or (removed and self._marked):
                self._known = True
                self._save(sync=True)

    def _list(self, removals: Iterable[int], start_offset: int) -> bool:
        """List events, of a batch that begins with start_offset; return whether one is new."""
        if not self._known:
            self._removals_from = start_offset
        fresh = set(removals).difference(self._removals)
        if fresh:
            self._removals = sorted(fresh.union(self._removals))
            if len(self._removals) > _REMOVALS_KEPT:
                self._removals = self._removals[-_REMOVALS_KEPT:]
                self._removals_from = max(self._removals_from, self._removals[0])
        return bool(fresh)

    def confirm(self, broker_id: int, end_offset: int) -> None:
        """Clear a broker that has confirmed all it was marked for, up to end_offset; what it has
        not is marked from there on. Kept by the next `save` or `mark`: losing it in a crash costs
        a repetition.
        """
        with self._lock:
            mark = self._marked.get(broker_id)
            if mark is None:
                return
            if mark.until <= end_offset:
                del self._marked[broker_id]
            else:
                self._marked[broker_id] = Mark(max(mark.since, end_offset), mark.until)

    def save(self) -> None:
        """Keep what was confirmed."""
        with self._lock:
            self._save(sync=False)

    def _is_marked(self, broker_id: int) -> bool:
        return not self._known or broker_id in self._marked

    def _save(self, *, sync: bool) -> None:
        write_whole(self._path, orjson.dumps(self._kept()), sync=sync)

    def _kept(self) -> dict[str, Any]:
        """Return what `_load` takes, without removals that nobody has missed."""
        since = min((mark.since for mark in self._marked.values()), default=None)
        self._removals = [one for one in self._removals if since is not None and one >= since]
        marks = {
            str(broker): [mark.since, mark.until] for broker, mark in sorted(self._marked.items())
        }
        return {
            "pending": marks,
            "removals": self._removals,
            "removals_from": self._removals_from,
        }
