"""Which requests a batch's persisted decisions mean for each broker, and in which order.

Per broker: UpdateMetadata with the live brokers when they changed (with everything for a broker
that was introduced), then LeaderAndIsr, UpdateMetadata with what changed (with the topics that are
gone for a broker that was introduced: brokers keep what they are not told of), StopReplica. A
LeaderAndIsr that names a leader the broker has not heard of is silently ignored by it, hence the
order. Partitions that have another leader come in requests ahead of the others: a broker needs
about a millisecond for each, and clients wait for these. Of several changes to a partition in one
batch the last is sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from state.blocks import Column
from state.change_columns import CHANGE_COLUMNS
from state.decisions import Action, DecisionKind, acts
from state.matrix import NONE, Bools, Int32s, any_in_row, places_of
from state.partitions.changes import LEADER_DURING_DELETE
from streaming.image.announced_leader import with_announced_leader
from streaming.image.brokers import endpoint_on
from streaming.image.cluster_image import ClusterImage
from streaming.sinks.batch import SinkDecision
from streaming.sinks.block_merging import merge_changes, merge_stops
from streaming.sinks.new_replicas import new_replicas
from streaming.sinks.rows import NO_ROWS, image_rows, partition_rows
from streaming.sinks.superseded import without_superseded
from streaming.wire.apis import APIS, ApiKey
from streaming.wire.partition_rows import (
    BrokerNode,
    EncodedBody,
    LiveLeader,
    PartitionRows,
)
from streaming.wire.partition_rpcs import (
    encode_leader_and_isr,
    encode_stop_replica,
    encode_update_metadata,
)

_LAST_LEADER_AND_ISR_BY_NAME = 4


@dataclass(eq=False, slots=True)
class SharedRequest:
    """A request that may go to many brokers: encoded once per version, addressed by broker epoch.

    leaders and brokers: what LeaderAndIsr and UpdateMetadata list beside the partitions.
    """

    api: ApiKey
    controller_id: int
    controller_epoch: int
    rows: PartitionRows
    leaders: Sequence[LiveLeader] = ()
    brokers: Sequence[BrokerNode] = ()
    _encoded: dict[int, EncodedBody] = field(default_factory=dict)

    @property
    def tells_an_end(self) -> bool:
        """Whether it tells of a replica or a topic that is to go: the image has no word of it."""
        ends = self.rows.leader == LEADER_DURING_DELETE
        return self.api is ApiKey.STOP_REPLICA or bool(ends.any())

    @property
    def max_version(self) -> int:
        """The highest version of the API whose answer tells the topics apart: from version 5 on
        LeaderAndIsr is answered by topic id, and all topics without one have the same
        (ControllerChannelManager: version 4 below inter-broker protocol 2.8).
        """
        lacks_id = ~any_in_row(self.rows.topic_ids != 0)
        if self.api is ApiKey.LEADER_AND_ISR and lacks_id[self.rows.topic_index].any():
            return _LAST_LEADER_AND_ISR_BY_NAME
        return APIS[self.api].max_version

    def encode(self, version: int) -> EncodedBody:
        """Return the body for a version of the API."""
        body = self._encoded.get(version)
        if body is None:
            body = self._encoded[version] = self._encode(version)
        return body

    def _encode(self, version: int) -> EncodedBody:
        common = {
            "controller_id": self.controller_id,
            "controller_epoch": self.controller_epoch,
            "broker_epoch": -1,
        }
        match self.api:
            case ApiKey.UPDATE_METADATA:
                return encode_update_metadata(
                    version, **common, rows=self.rows, live_brokers=self.brokers
                )
            case ApiKey.LEADER_AND_ISR:
                return encode_leader_and_isr(
                    version, **common, rows=self.rows, live_leaders=self.leaders
                )
            case ApiKey.STOP_REPLICA:
                return encode_stop_replica(version, **common, rows=self.rows)
        raise AssertionError(f"{APIS[self.api].name} is not a controller RPC")


Plan = dict[int, list[SharedRequest]]
"""Requests per broker id, in the order in which the broker must see them."""


def in_order(*plans: Plan) -> Plan:
    """Return the requests of all plans for each broker, those of the first plan first."""
    brokers = dict.fromkeys(broker for plan in plans for broker in plan)
    return {one: [request for plan in plans for request in plan.get(one, ())] for one in brokers}


class Planner:
    """Turns persisted decisions into requests, looking at an image that has folded them already.

    announced_topic: of which brokers are told that this node leads it, None for none.
    """

    def __init__(self, image: ClusterImage, listener: str, *, announced_topic: str | None) -> None:
        """Take the image and the listener on which brokers reach leaders (inter-broker)."""
        self._image = image
        self._listener = listener
        self._announced_topic = announced_topic

    def plan(self, decisions: Iterable[SinkDecision]) -> Plan:
        """Return the requests for every registered broker that has to hear of the decisions."""
        decided = without_superseded(decisions)
        updates = [one for one in decided if one.kind is DecisionKind.UPDATE_BROKERS]
        introduced = {
            broker: update.offset for update in updates for broker in update.content["introduced"]
        }
        plan: Plan = {broker: [] for broker in self._image.brokers}
        if updates:
            self._tell_brokers(plan, introduced)
        self._tell_partitions(plan, introduced, decided)
        self._stop_replicas(plan, decided)
        return {broker: requests for broker, requests in plan.items() if requests}

    def everything_for(self, brokers: Collection[int]) -> Plan:
        """Return what brokers that may know nothing must be told: metadata, which is one request
        for all of them, and their replicas.
        """
        if not brokers:
            return {}
        rows = image_rows(self._image)
        metadata = self._metadata(rows)
        plan: Plan = {}
        for broker in brokers:
            plan[broker] = [metadata]
            hosted = np.flatnonzero(any_in_row(rows.replicas == broker))
            if len(hosted):
                plan[broker].append(self._leader_and_isr(rows.select(hosted)))
        return plan

    def _tell_brokers(self, plan: Plan, introduced: Mapping[int, int]) -> None:
        known = self._metadata(NO_ROWS)
        everything = self._metadata(image_rows(self._image)) if introduced else known
        for broker, requests in plan.items():
            requests.append(everything if broker in introduced else known)

    def _tell_partitions(
        self, plan: Plan, introduced: Mapping[int, int], decided: Sequence[SinkDecision]
    ) -> None:
        changes = [one for one in decided if one.kind is DecisionKind.CHANGE_PARTITIONS]
        merged = merge_changes(changes)
        if merged is None:
            return
        columns, topics, topic_ids = merged
        rows = partition_rows(columns, columns["topic"], topics, topic_ids)
        deleted = acts(columns, Action.DELETED)
        rows = _while_deleted(rows, deleted)
        # What the batch started before it deletes it was never there.
        recipients = np.where(columns["recipients"] & ~deleted[:, None], columns["replicas"], NONE)
        new_there = new_replicas(changes, introduced, columns)
        announced = acts(columns, Action.UPDATE_METADATA)
        led = (columns["leader"] != columns["leader_before"]) & ~deleted
        for part in (one for one in (led, ~led) if one.any()):
            self._tell_replicas(plan, rows, np.where(part[:, None], recipients, NONE), new_there)
            self._announce(plan, plan.keys() - introduced, rows.select(announced & part))
        # The image has no word of these, and a broker may have lived on while it was not registered
        # or nobody controlled.
        gone = rows.select(announced & deleted)
        self._announce(plan, plan.keys() & introduced, gone)

    def _tell_replicas(
        self, plan: Plan, rows: PartitionRows, recipients: Int32s, new_there: Bools
    ) -> None:
        """Tell recipients int32[n, R], padded with -1, about their rows; new_there: where their
        replicas are new.
        """
        for broker, (at, column) in places_of(recipients, plan.keys()).items():
            if len(at):
                told = replace(rows.select(at), is_new=new_there[at, column])
                plan[broker].append(self._leader_and_isr(told))

    def _announce(self, plan: Plan, brokers: Iterable[int], rows: PartitionRows) -> None:
        if not len(rows):
            return
        metadata = self._metadata(rows)
        for broker in brokers:
            plan[broker].append(metadata)

    def _stop_replicas(self, plan: Plan, decided: Sequence[SinkDecision]) -> None:
        merged = merge_stops([one for one in decided if one.kind is DecisionKind.STOP_REPLICAS])
        if merged is None:
            return
        columns, rows = merged[0], stop_rows(*merged)
        for broker in np.unique(columns["broker"]).tolist():
            for delete in (False, True) if broker in plan else ():
                at = np.flatnonzero((columns["broker"] == broker) & (columns["delete"] == delete))
                if len(at):
                    plan[broker].append(self._request(ApiKey.STOP_REPLICA, rows.select(at)))

    def _with_announced_leader(self, rows: PartitionRows) -> PartitionRows:
        if self._announced_topic is None or self._image.controller_node is None:
            return rows
        return with_announced_leader(rows, self._announced_topic, self._image.controller_id)

    def _metadata(self, rows: PartitionRows) -> SharedRequest:
        request = self._request(ApiKey.UPDATE_METADATA, self._with_announced_leader(rows))
        nodes = [broker.node for _, broker in sorted(self._image.brokers.items())]
        ours = self._image.controller_node
        request.brokers = [*nodes, ours] if ours is not None else nodes
        return request

    def _leader_and_isr(self, rows: PartitionRows) -> SharedRequest:
        rows = self._with_announced_leader(rows)
        request = self._request(ApiKey.LEADER_AND_ISR, rows)
        nodes = {id_: broker.node for id_, broker in self._image.brokers.items()}
        if self._image.controller_node is not None:
            nodes[self._image.controller_id] = self._image.controller_node
        leaders = [nodes[id_] for id_ in np.unique(rows.leader).tolist() if id_ in nodes]
        request.leaders = [leader for node in leaders if (leader := self._address(node))]
        return request

    def _address(self, node: BrokerNode) -> LiveLeader | None:
        end = endpoint_on(node, self._listener)
        return LiveLeader(node.id, end.host, end.port) if end else None

    def _request(self, api: ApiKey, rows: PartitionRows) -> SharedRequest:
        return SharedRequest(api, self._image.controller_id, self._image.controller_epoch, rows)


def _while_deleted(rows: PartitionRows, deleted: Bools) -> PartitionRows:
    """Return rows of which those that are being deleted say so (LeaderAndIsr.duringDelete)."""
    if not deleted.any():
        return rows
    return replace(
        rows,
        leader=np.where(deleted, np.int32(LEADER_DURING_DELETE), rows.leader),
        leader_epoch=np.where(deleted, np.int32(0), rows.leader_epoch),
        partition_epoch=np.where(deleted, np.int32(0), rows.partition_epoch),
    )


def stop_rows(
    columns: dict[str, Column], topics: list[str], topic_ids: Sequence[str | None]
) -> PartitionRows:
    """Return rows of stop_replicas, sorted by topic, as StopReplica carries them."""
    count = len(columns["topic"])
    state = {one.name: one.blank(count) for one in CHANGE_COLUMNS if one.kept}
    state |= {name: columns[name] for name in ("partition", "leader_epoch")}
    rows = partition_rows(state, columns["topic"], topics, topic_ids)
    return replace(rows, delete_partition=columns["delete"])
