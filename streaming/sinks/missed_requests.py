"""What brokers may have missed that have not confirmed all that was queued for them."""

from __future__ import annotations

from streaming.image.cluster_image import ClusterImage
from streaming.log.api import LogReader
from streaming.sinks.missed_removals import missed_removals
from streaming.sinks.plan import Plan, Planner
from streaming.sinks.unconfirmed_brokers import UnconfirmedBrokers
from streaming.sinks.zookeeper import ZooKeeperSink


class MissedRequests:
    """Repeats requests for the marked ones of the image's brokers: everything first, then
    removals.
    """

    def __init__(
        self,
        image: ClusterImage,
        unconfirmed: UnconfirmedBrokers,
        planner: Planner,
        decision_log: LogReader,
        zookeeper: ZooKeeperSink,
    ) -> None:
        """Take the marks, and where it is found what is to be repeated."""
        self._image = image
        self._unconfirmed = unconfirmed
        self._planner = planner
        self._decision_log = decision_log
        self._zookeeper = zookeeper

    def everything(self) -> Plan:
        """Return what the image says."""
        brokers = [broker for broker in self._image.brokers if self._unconfirmed.marked(broker)]
        return self._planner.everything_for(brokers)

    def removals(self, until: int) -> Plan:
        """Return the removals by events before `until`."""
        image = self._image
        since = self._unconfirmed.since(image.brokers)
        if since is None:
            return {}
        stored = self._zookeeper.stored_topics
        events = self._unconfirmed.removed_on(range(since, until))
        missed = missed_removals(self._decision_log, events, image, stored)
        plan = self._planner.plan(missed)
        return {one: plan[one] for one in plan if self._unconfirmed.marked(one)}
