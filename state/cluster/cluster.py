"""What the cluster machine holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from state.bodies import EndpointBody
from state.cluster.authority import Authority
from state.cluster.brokers import Brokers
from state.cluster.config import ClusterConfig


@dataclass(slots=True)
class Cluster:
    """State of the cluster machine.

    endpoints: our own, told to every broker so that it can reach us.
    producer_id_end: last id handed out in blocks, -1 before the first; producer_id_version: version
    of `/latest_producer_id_block`, -1 while it does not exist. timers: deadline in ms by timer
    name.
    """

    authority: Authority = field(default_factory=Authority)
    config: ClusterConfig = field(default_factory=ClusterConfig)
    brokers: Brokers = field(default_factory=Brokers)
    endpoints: tuple[EndpointBody, ...] = ()
    producer_id_end: int = -1
    producer_id_version: int = -1
    timers: dict[str, int] = field(default_factory=dict)
