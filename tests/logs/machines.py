"""Machines that live while a random log is written: what its author looks at.

Between batches machines are bytes; here they go on as they are, which is quicker. A machine that
fails at an event fails the test: a fold would set the event aside and go on.
"""

from __future__ import annotations

from state.events import Event
from state.merge import MergedDecision, merge
from state.routing import Layout, machine_keys, scope
from state.step import Machine, fold, new_machine


class Machines(dict[int, Machine]):
    """Machines by state key, one slot and one group slot among them; each is there from the
    beginning.
    """

    def __missing__(self, key: int) -> Machine:
        """Return the initial machine of a key."""
        self[key] = new_machine(key)
        return self[key]

    def fold(self, event: Event) -> list[MergedDecision]:
        """Fold one event into the machines that it concerns, and return what they decide."""
        found = []
        for key in machine_keys(scope(event.kind, event.key), Layout(1, 1)):
            found.extend(fold(self[key], [event]))
        return merge(found)
