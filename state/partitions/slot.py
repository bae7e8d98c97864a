"""The whole state of one slot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from state.cluster.authority import Authority
from state.cluster.brokers import Brokers
from state.cluster.config import ClusterConfig
from state.matrix import NONE, Bools, Int32s, Rows, among, any_in_row, contains
from state.partitions.ballots import Ballot
from state.partitions.election import deprioritized
from state.partitions.table import PartitionTable


@dataclass(slots=True)
class Slot:
    """Partitions of the topics that hash to one slot, and its copy of what is known of the
    cluster.

    ballots: a list to note elections in while decisions are explained; not part of the state.
    """

    authority: Authority = field(default_factory=Authority)
    config: ClusterConfig = field(default_factory=ClusterConfig)
    brokers: Brokers = field(default_factory=Brokers)
    table: PartitionTable = field(default_factory=PartitionTable)
    ballots: list[Ballot] | None = None

    def may_write(self, at: Rows) -> Bools:
        """Return bool[k]: no newer controller has stored the row's state
        (PartitionStateMachine.doElectLeaderForPartitions).
        """
        ours: Bools = self.table.rows.controller_epoch[at] <= self.authority.epoch
        return ours

    def hosted_by(self, ids: Iterable[int]) -> Bools:
        """Return bool[n, R]: the replica is on one of these brokers."""
        return among(self.table.rows.replicas, np.array(sorted(ids), dtype=np.int32))

    def online_replicas(self, at: Rows) -> Bools:
        """Return bool[k, R]: the replica's broker is live and its log directory is not known to
        have failed.
        """
        rows = self.table.rows
        return self.brokers.live(rows.replicas[at]) & ~rows.offline_dir[at]

    def registered_replicas(self, at: Rows) -> Bools:
        """Return bool[k, R]: the replica's broker is registered, shutting down or not, and its log
        directory is not known to have failed.
        """
        rows = self.table.rows
        return self.brokers.registered(rows.replicas[at]) & ~rows.offline_dir[at]

    def deprioritized(self, at: Rows) -> Bools:
        """Return bool[k, R]: the replica's broker leads where nobody else can."""
        return deprioritized(self.table.rows.replicas[at], self.config.deprioritized)

    def shutting_down_leaders(self, at: Rows) -> Bools:
        """Return bool[k, R]: the replica leads, and its broker is shutting down: it goes on until
        another one can.
        """
        rows = self.table.rows
        leads = rows.replicas[at] == rows.leader[at][:, None]
        shutting_down: Bools = leads & self.registered_replicas(at) & ~self.online_replicas(at)
        return shutting_down

    def online_members(self, at: Rows) -> Bools:
        """Return bool[k, W]: the ISR member's broker is live and its log directory is not known to
        have failed.
        """
        return self.online(at, self.table.rows.isr[at])

    def online_leader(self, at: Rows) -> Bools:
        """Return bool[k]: the partition has a leader, it is a replica, and it is online."""
        rows = self.table.rows
        leader = rows.leader[at][:, None]
        online: Bools = (self.online(at, leader) & contains(rows.replicas[at], leader))[:, 0]
        return online

    def is_led(self, at: Rows) -> Bools:
        """Return bool[k]: the partition counts as ONLINE: its leader is online, or is shutting down
        and goes on.
        """
        return self.online_leader(at) | any_in_row(self.shutting_down_leaders(at))

    def online(self, at: Rows, ids: Int32s) -> Bools:
        """Return a mask shaped like ids int32[k, V]: the broker is live, and the log directory with
        its replica of the row is not known to have failed; -1 never is.
        """
        rows = self.table.rows
        failed = np.where(rows.offline_dir[at], rows.replicas[at], NONE)
        return self.brokers.live(ids) & ~contains(failed, ids)

    def min_insync_replicas(self) -> Int32s:
        """Return int32[n]: the topic's override of min.insync.replicas, else the cluster's."""
        default = self.config.min_insync_replicas
        by_topic = np.array(
            [default if one.min_insync is None else one.min_insync for one in self.table.topics],
            dtype=np.int32,
        )
        least: Int32s = by_topic[self.table.rows.topic]
        return least

    def unclean_allowed(self, at: Rows) -> Bools:
        """Return bool[k]: the topic's override of unclean.leader.election.enable, else the
        cluster's default.
        """
        topic = self.table.rows.topic[at]
        named = np.zeros(len(self.table.topics), dtype=bool)
        named[topic] = True
        by_topic = np.full(len(named), self.config.unclean_default)
        for index in np.flatnonzero(named).tolist():
            unclean = self.table.topics[index].unclean
            if unclean is not None:
                by_topic[index] = unclean
        allowed: Bools = by_topic[topic]
        return allowed
