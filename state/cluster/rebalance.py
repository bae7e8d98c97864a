"""What the automatic leader rebalance does next: every machine finds the same from a report."""

from __future__ import annotations

from dataclasses import dataclass

from state.cluster.authority import Authority
from state.payloads.partitions import LeaderImbalanceReported


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a rebalance.

    elections: partitions by topic that go back to their preferred replica. unfinished: brokers,
    ascending, that have more to get back than the step has room for.
    """

    elections: dict[str, list[int]]
    unfinished: tuple[int, ...]


def next_step(authority: Authority, report: LeaderImbalanceReported) -> Step:
    """Return what to do about a report.

    Brokers whose share of partitions led elsewhere is above the threshold get all of them back, the
    first rebalance_partitions_max now: a broker once begun with is gone on with below it
    (KafkaController.checkAndTriggerAutoLeaderRebalance, which moves all of a broker's at once).
    """
    limit = authority.leader_imbalance_percentage
    over = {
        broker
        for broker, total in report.preferred.items()
        if total and report.imbalanced.get(broker, 0) * 100 > limit * total
    }
    over.update(authority.rebalancing)
    proposed = [one for one in report.proposals if one[2] in over]
    room = authority.rebalance_partitions_max
    elections: dict[str, list[int]] = {}
    for topic, partition, _ in proposed[:room]:
        elections.setdefault(topic, []).append(partition)
    return Step(elections, tuple(sorted({broker for _, _, broker in proposed[room:]})))
