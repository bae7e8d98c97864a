"""What the image says about the partitions that this node leads."""

from __future__ import annotations

from dataclasses import dataclass

from state.matrix import unpad
from streaming.image.announced_leader import announced_epoch, is_announced_as_ours
from streaming.image.cluster_image import ClusterImage
from streaming.internal_topics import GROUP_TOPIC


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """One partition: leader and leader_epoch as ZooKeeper has them.

    in_sync: live brokers of the ISR; live: replicas on live brokers; online: those with a log
    directory there.
    """

    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    recovery: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    in_sync: tuple[int, ...]
    live: tuple[int, ...]
    online: tuple[int, ...]

    @property
    def announced_epoch(self) -> int:
        """The leader epoch under which brokers fetch from us."""
        return announced_epoch(self.leader_epoch)

    @property
    def announced_as_ours(self) -> bool:
        """Whether brokers may have been told that we lead it."""
        return is_announced_as_ours(self.leader, self.leader_epoch)


def partition_facts(image: ClusterImage) -> dict[int, PartitionFacts]:
    """Return what is known of the topic's partitions, by number; nothing without the topic."""
    rows = image.rows_of(GROUP_TOPIC)
    found = {}
    for row in range(rows.start, rows.stop):
        columns = {name: column[row] for name, column in image.columns.items()}
        replicas, isr = tuple(unpad(columns["replicas"])), tuple(unpad(columns["isr"]))
        number = int(columns["partition"])
        live = tuple(broker for broker in replicas if broker in image.brokers)
        offline = set(columns["replicas"][columns["offline"]].tolist())
        found[number] = PartitionFacts(
            partition=number,
            leader=int(columns["leader"]),
            leader_epoch=int(columns["leader_epoch"]),
            partition_epoch=int(columns["partition_epoch"]),
            recovery=int(columns["recovery"]),
            replicas=replicas,
            isr=isr,
            in_sync=tuple(broker for broker in isr if broker in image.brokers),
            live=live,
            online=tuple(broker for broker in live if broker not in offline),
        )
    return found
