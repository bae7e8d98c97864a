"""DescribeCluster: the cluster's id, nodes and controller."""

from __future__ import annotations

from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call
from streaming.gateway.nodes import Nodes
from streaming.gateway.operations import CLUSTER_OPERATIONS, NOT_ASKED
from streaming.gateway.ports import ClusterView
from streaming.wire.schema_codec import Body

_BROKERS, _CONTROLLERS = 1, 2


class DescribeCluster:
    """Answers DescribeCluster from the image (AuthHelper.computeDescribeClusterResponse).

    While no node is known the connection is closed, as for Metadata.
    """

    def __init__(self, view: ClusterView, nodes: Nodes) -> None:
        """Take what is known of the cluster and its nodes."""
        self._view = view
        self._nodes = nodes

    async def handle(self, call: Call) -> Body:
        """Answer with the nodes of the connection's listener."""
        asked = call.body["endpoint_type"]
        if asked != _BROKERS:
            known = asked == _CONTROLLERS
            return {
                "error_code": ProtocolError.MISMATCHED_ENDPOINT_TYPE
                if known
                else ProtocolError.UNSUPPORTED_ENDPOINT_TYPE,
                "error_message": f"endpoint type {asked} is not served here, only {_BROKERS}",
                "cluster_id": self._view.cluster_id,
                "brokers": [],
            }
        _, nodes = self._nodes.reachable(call.listener)
        operations = call.body["include_cluster_authorized_operations"]
        return {
            "error_code": ProtocolError.NONE,
            "cluster_id": self._view.cluster_id,
            "controller_id": self._nodes.controller_id(),
            "brokers": [
                {"broker_id": node.id, "host": node.host, "port": node.port, "rack": node.rack}
                for node in nodes.values()
            ],
            "cluster_authorized_operations": CLUSTER_OPERATIONS if operations else NOT_ASKED,
        }
