"""What the controller's thread last saw in ZooKeeper, for those that show it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Seen:
    """Written by the controller's thread, read by any.

    cluster_id: "" until a broker created it; holder: who had /controller, None: nobody;
    migration: whether a KRaft controller has begun to look at the cluster (/migration);
    topics_to_delete: how many are named to be deleted, those that are being deleted too.
    """

    cluster_id: str = ""
    holder: int | None = None
    migration: bool = False
    topics_to_delete: int = 0

    def note_holder(self, controller_id: int | None) -> None:
        """Take who holds /controller."""
        self.holder = controller_id

    def note_deletions(self, topics: int) -> None:
        """Take how many topics are named to be deleted."""
        self.topics_to_delete = topics
