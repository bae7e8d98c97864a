"""How far the partitions of __consumer_offsets are that this node leads: elected, loaded, served.

A partition is served once the job has decided all that was loaded of it. When the role is lost,
those that were served are no more; they count as led until they are resigned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from state.event_kinds import EventKind
from streaming.log.api import NewRecord
from streaming.log.events import event


class GroupTerms:
    """The partitions that are led, by number, from their election until they are resigned."""

    def __init__(self) -> None:
        """Lead none."""
        self._epochs: dict[int, int] = {}
        self._loaded: dict[int, int] = {}
        self._served: set[int] = set()

    @property
    def led(self) -> list[int]:
        """Return the partitions that are led, loaded or not."""
        return list(self._epochs)

    def epoch(self, partition: int) -> int:
        """Return the leader epoch of a partition that is led."""
        return self._epochs[partition]

    def is_served(self, partition: int) -> bool:
        """Return whether all that was loaded of a partition is decided."""
        return partition in self._served

    def elected(self, partitions: Mapping[int, int]) -> None:
        """Take partitions (number: leader epoch) that are led from now on."""
        self._epochs.update(partitions)

    def loaded(self, partition: int, offset: int) -> None:
        """Take at which offset the event is that ends what was loaded of a partition."""
        self._loaded[partition] = offset

    def completed(self, end_offset: int, taken: Collection[int]) -> list[int]:
        """Take how far the job has decided; return the partitions that are served from now on.

        taken: those whose decisions were taken. What was decided of others is not known here.
        """
        found = [
            one for one, offset in self._loaded.items() if end_offset > offset and one in taken
        ]
        for partition in found:
            del self._loaded[partition]
        self._served.update(found)
        return found

    def unserved(self) -> None:
        """Serve none, as when the role is lost; what is led is still to be resigned."""
        self._served.clear()

    def ended(self) -> None:
        """Lead none."""
        self._epochs.clear()
        self._loaded.clear()
        self._served.clear()


def election(
    partitions: Mapping[int, int], config: Mapping[str, int], *, first: bool
) -> list[NewRecord]:
    """Return the events that begin a term of partitions (number: leader epoch).

    config: what decisions about groups depend on. first: whether none is led already.
    """
    records = [
        resignation(list(partitions), every=first),
        event(EventKind.GROUP_COORDINATOR_CONFIGURED, {"config": config}),
    ]
    for epoch in sorted(set(partitions.values())):
        of_epoch = [one for one, its in partitions.items() if its == epoch]
        body = {"partitions": of_epoch, "epoch": epoch}
        records.append(event(EventKind.GROUP_PARTITIONS_ELECTED, body))
    return records


def resignation(partitions: Sequence[int], *, every: bool = False) -> NewRecord:
    """Return group_partitions_resigned for the previous term.

    Heartbeat times are unknown, so no session expires by it; nor is it known whether the topic is
    the same, so its epochs begin anew. every: whether all others end too, as the topic may have had
    more partitions.
    """
    body = {"partitions": partitions, "epoch": None, "unheard": True, "every": every}
    return event(EventKind.GROUP_PARTITIONS_RESIGNED, body)
