"""Which nodes a client on one listener can reach."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.gateway.calls import BoundListener, NotReady
from streaming.gateway.ports import ClusterView
from streaming.image.cluster_image import ClusterImage

NO_NODE_ID = -1


@dataclass(frozen=True, slots=True)
class Node:
    """A broker, or this node, with its address on one listener."""

    id: int
    host: str
    port: int
    rack: str | None


NO_NODE = Node(NO_NODE_ID, "", -1, None)
"""What responses name when there is no node."""


class Nodes:
    """Finds the nodes of a listener.

    Brokers without an endpoint of the listener's name are left out. This node is named as the
    controller while it has the role and the image is current. It is one of the nodes in any case:
    without the role it answers by itself only while no broker says who else has it, so that the
    brokers' clients know this node, and may be asking it something. librdkafka (2.16) can come to
    wait for itself when a node is taken from it then, and its next answer names the node again.
    """

    def __init__(self, view: ClusterView, node_id: int) -> None:
        """Take what is known of the cluster, and this node's id."""
        self._view = view
        self._node_id = node_id

    def controller_id(self) -> int:
        """Return this node's id while it is the controller and knows the cluster, else -1."""
        return self._node_id if self._view.is_current() else NO_NODE_ID

    def reachable(self, listener: BoundListener) -> tuple[ClusterImage, dict[int, Node]]:
        """Return the image and the reachable nodes by id, as `on`, or raise NotReady if there is no
        image yet, or it knows no broker while somebody else may be the controller.
        """
        image = self._view.image()
        nodes = {} if image is None else self.on(listener, image)
        if image is None or (nodes.keys() == {self._node_id} and not self._view.is_current()):
            raise NotReady("no node is known yet that a client could go to")
        return image, nodes

    def on(self, listener: BoundListener, image: ClusterImage) -> dict[int, Node]:
        """Return the reachable nodes by id, brokers ascending, this node last, in the rack that
        brokers name for it.
        """
        nodes = {}
        for broker_id, broker in sorted(image.brokers.items()):
            for end in broker.node.endpoints:
                if end.listener == listener.name:
                    nodes[broker_id] = Node(broker_id, end.host, end.port, broker.node.rack)
        ours = image.controller_node
        rack = None if ours is None else ours.rack
        nodes.pop(self._node_id, None)
        nodes[self._node_id] = Node(self._node_id, listener.host, listener.port, rack)
        return nodes
