"""UpdateFeatures: brokers of ZooKeeper mode support no feature that could be finalized."""

from __future__ import annotations

from state.protocol_errors import ProtocolError
from streaming.gateway.admin import AdminRequests
from streaming.gateway.calls import Call
from streaming.wire.schema_codec import Body

_UNSUPPORTED = (
    "Could not apply finalized feature update because the provided feature is not supported."
)


class UpdateFeatures:
    """Answers UpdateFeatures (KafkaController.validateFeatureUpdate)."""

    def __init__(self, requests: AdminRequests) -> None:
        """Take who knows whether this node is the controller."""
        self._requests = requests

    async def handle(self, call: Call) -> Body:
        """Refuse every feature: no registration of a broker names one."""
        if not self._requests.ready():
            error = ProtocolError.NOT_CONTROLLER
            return {"error_code": error, "error_message": None, "results": []}
        results = [
            {
                "feature": update["feature"],
                "error_code": ProtocolError.INVALID_REQUEST,
                "error_message": _UNSUPPORTED,
            }
            for update in call.body["feature_updates"]
        ]
        return {"error_code": ProtocolError.NONE, "error_message": None, "results": results}
