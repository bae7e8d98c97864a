"""What comes of each step of a rehearsal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from state.matrix import Bools
from state.topic_partition import TopicPartition
from streaming.rehearsal.acts import Acts
from streaming.rehearsal.cluster_copy import ClusterCopy
from streaming.rehearsal.standing import Standing
from streaming.rehearsal.steps import Step


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step does to partitions; step None: how they are before the first one.

    moved: how many have another leader. unclean: got one that was not in sync. leaderless: have
    none any more. too_few: have one, and by this step fewer replicas in sync than
    min.insync.replicas. refused: brokers that may not stop, with what keeps them. leaders: how many
    partitions each broker leads then.
    """

    step: Step | None
    moved: int
    unclean: list[TopicPartition]
    leaderless: list[TopicPartition]
    too_few: list[TopicPartition]
    refused: dict[int, list[TopicPartition]]
    leaders: dict[int, int]

    @property
    def does_harm(self) -> bool:
        """Whether a producer, or who reads, would notice it for longer than an election."""
        harm = self.unclean, self.leaderless, self.too_few, self.refused
        return self.step is not None and any(harm)


def rehearse(copy: ClusterCopy, steps: Iterable[Step]) -> Iterator[Outcome]:
    """Tell how a copy of a cluster is, then what comes of steps, each behind those before; raises
    ConfigurationError when one of them cannot happen.
    """
    acts, before = Acts(copy), copy.standing()
    yield Outcome(
        step=None,
        moved=0,
        unclean=[],
        leaderless=before.places(before.leaderless),
        too_few=before.places(before.too_few),
        refused={},
        leaders=before.leaders(),
    )
    for step in steps:
        refused = acts.carry_out(step)
        after = copy.standing()
        yield _outcome(step, before, after, refused)
        before = after


def _outcome(
    step: Step, before: Standing, after: Standing, refused: dict[int, list[TopicPartition]]
) -> Outcome:
    def newly(rows: Bools, others: Bools) -> list[TopicPartition]:
        return after.places(rows & ~others)

    return Outcome(
        step=step,
        moved=int(after.moved_since(before).sum()),
        unclean=after.places(after.unclean_since(before)),
        leaderless=newly(after.leaderless, before.leaderless),
        too_few=newly(after.too_few, before.too_few),
        refused=refused,
        leaders=after.leaders(),
    )
