"""What the automatic leader rebalance does next: every machine finds the same from a report."""

from __future__ import annotations

from dataclasses import dataclass

from state.cluster.authority import Authority
from state.cluster.config import ClusterConfig
from state.payloads.partitions import LeaderImbalanceReported

LEADER_REBALANCE_TIMER = "leader_rebalance"
"""Armed by the cluster machine, answered by the slots."""

WAITING_INTERVAL_MS = 10_000
"""How often it is looked whether brokers that wait have all replicas in sync."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a rebalance.

    elections: partitions by topic that go back to their preferred replica. is_full: there was no
    room for all.
    """

    elections: dict[str, list[int]]
    is_full: bool


def take_step(
    config: ClusterConfig, authority: Authority, report: LeaderImbalanceReported, now_ms: int
) -> Step:
    """Return what to do about a report of this time, and note in the authority which brokers have
    more to get back than there is room for, or wait until their replicas are in sync.

    Brokers whose share of partitions led elsewhere is above the threshold get all of them back, the
    first rebalance_partitions_max now: a broker once begun with is gone on with below it
    (KafkaController.checkAndTriggerAutoLeaderRebalance, which moves all of a broker's at once). One
    that has replicas out of sync waits for them, rebalance_sync_wait_ms at most (KAFKA-20708).
    """
    limit = config.leader_imbalance_percentage
    over = {
        broker
        for broker, total in report.preferred.items()
        if total and report.imbalanced.get(broker, 0) * 100 > limit * total
    }
    over.update(authority.rebalancing)
    before = dict(authority.behind_since)
    behind_since = [(broker, before.get(broker, now_ms)) for broker in sorted(report.behind)]
    waiting = {
        broker
        for broker, since_ms in behind_since
        if now_ms - since_ms < config.rebalance_sync_wait_ms and broker not in config.deprioritized
    }
    wanted = [one for one in report.proposals if one.broker in over]
    proposed = [one for one in wanted if one.broker not in waiting]
    room = config.rebalance_partitions_max
    elections: dict[str, list[int]] = {}
    for one in proposed[:room]:
        elections.setdefault(one.topic, []).append(one.partition)
    left = {one.broker for one in proposed[room:]}
    unfinished = left.union(one.broker for one in wanted if one.broker in waiting)
    authority.rebalancing = tuple(sorted(unfinished))
    authority.behind_since = tuple(behind_since)
    return Step(elections, bool(left))
