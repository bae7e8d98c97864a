"""DescribeGroups, ListGroups and DeleteGroups: what administrators ask."""

from __future__ import annotations

import asyncio
from base64 import b64decode

from state.groups.answers import CLASSIC, describe_group, list_groups
from state.groups.tables import GroupApi
from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call
from streaming.gateway.groups.requests import GroupRequests
from streaming.gateway.operations import GROUP_OPERATIONS, NOT_ASKED
from streaming.wire.schema_codec import Body


class Overview:
    """Answers what is asked about groups as a whole."""

    def __init__(self, requests: GroupRequests) -> None:
        """Take who decides."""
        self._requests = requests

    async def describe(self, call: Call) -> Body:
        """Answer DescribeGroups from what is decided so far."""
        asked = call.body["include_authorized_operations"]
        return {"groups": [self._describe(group, asked) for group in call.body["groups"]]}

    def _describe(self, group: str, operations_asked: bool) -> Body:
        """Return one group, with its authorized operations unless it is refused
        (KafkaApis.handleDescribeGroupsRequest).
        """
        service = self._requests.service
        phase = service.phase(service.partition_of(group))
        found = describe_group(service.image, phase, group)
        shown = operations_asked and found.error is ProtocolError.NONE
        return {
            "error_code": found.error,
            "group_id": found.group,
            "group_state": found.state,
            "protocol_type": found.protocol_type,
            "protocol_data": found.protocol,
            "members": [
                {
                    "member_id": one.member,
                    "group_instance_id": one.instance,
                    "client_id": one.client,
                    "client_host": one.host,
                    "member_metadata": b64decode(one.metadata),
                    "member_assignment": b64decode(one.assignment),
                }
                for one in found.members
            ],
            "authorized_operations": GROUP_OPERATIONS if shown else NOT_ASKED,
        }

    async def list(self, call: Call) -> Body:
        """Answer ListGroups from what is decided so far."""
        service, body = self._requests.service, call.body
        error, found = list_groups(
            service.image, service.phases(), body["states_filter"], body["types_filter"]
        )
        groups = [
            {
                "group_id": one.group,
                "protocol_type": one.protocol_type,
                "group_state": one.state,
                "group_type": CLASSIC,
            }
            for one in found
        ]
        return {"error_code": error, "groups": groups}

    async def delete(self, call: Call) -> Body:
        """Answer DeleteGroups, each group by itself."""
        names = list(dict.fromkeys(call.body["groups_names"]))
        replies = await asyncio.gather(
            *(self._requests.reply(GroupApi.DELETE_GROUP, call, name, {}) for name in names)
        )
        results = [
            {"group_id": name, "error_code": reply["error"]}
            for name, reply in zip(names, replies, strict=True)
        ]
        return {"results": results}
