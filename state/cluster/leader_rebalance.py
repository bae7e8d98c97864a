"""What the automatic leader rebalance does next: every machine finds the same from a report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from state.cluster.config import ClusterConfig
from state.payloads.partitions import LeaderImbalanceReported

LEADER_REBALANCE_TIMER = "leader_rebalance"
"""Armed by the cluster machine, answered by the slots."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a rebalance.

    elections: partitions by topic that go back to their preferred replica. unfinished: brokers,
    ascending, that have more to get back than the step has room for.
    """

    elections: dict[str, list[int]]
    unfinished: tuple[int, ...]


def next_step(
    config: ClusterConfig, rebalancing: Iterable[int], report: LeaderImbalanceReported
) -> Step:
    """Return what to do about a report; rebalancing: brokers that were begun with.

    Brokers whose share of partitions led elsewhere is above the threshold get all of them back, the
    first rebalance_partitions_max now: a broker once begun with is gone on with below it
    (KafkaController.checkAndTriggerAutoLeaderRebalance, which moves all of a broker's at once).
    """
    limit = config.leader_imbalance_percentage
    over = {
        broker
        for broker, total in report.preferred.items()
        if total and report.imbalanced.get(broker, 0) * 100 > limit * total
    }
    over.update(rebalancing)
    proposed = [one for one in report.proposals if one.broker in over]
    room = config.rebalance_partitions_max
    elections: dict[str, list[int]] = {}
    for one in proposed[:room]:
        elections.setdefault(one.topic, []).append(one.partition)
    return Step(elections, tuple(sorted({one.broker for one in proposed[room:]})))
