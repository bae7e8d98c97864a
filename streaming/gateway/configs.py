"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs: each resource is answered by the node
that has it.

Brokers keep configs in ZooKeeper and answer for topics, clients and defaults, whichever of them is
asked; a broker's own configs are known and changed by that broker alone.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final

from state.protocol_errors import ProtocolError
from streaming.gateway.calls import Call, HangUp, shortened
from streaming.gateway.passing.brokers import Brokers
from streaming.gateway.passing.pool import BrokerFailed
from streaming.wire.config_resource import ConfigResourceType
from streaming.wire.errors import WireError
from streaming.wire.requests import encode_request
from streaming.wire.responses import decode_response, response_body
from streaming.wire.schema_codec import Body

_STATIC_BROKER_CONFIG = 4
_OF_ONE_BROKER: Final = {ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER}
_HERE: Final = "here"
_BROKER_ID: Final = re.compile("[0-9]{1,10}")
_SET, _DELETE = 0, 1  # org.apache.kafka.clients.admin.AlterConfigOp.OpType


_Place = int | str | None
"""Where a resource is asked about: a broker's id, _HERE, or None for any broker."""


class ConfigRequests:
    """Answers the three APIs about configs (ConfigHelper, ZkAdminManager)."""

    def __init__(self, brokers: Brokers, node_id: int, own: Mapping[str, str | None]) -> None:
        """Take the brokers, and this node's id and configs, which tools can read here."""
        self._brokers = brokers
        self._node_id = node_id
        self._own = own

    async def describe(self, call: Call) -> Body | bytes:
        """Answer DescribeConfigs."""
        return await self._answer(call, "results")

    async def alter(self, call: Call) -> Body | bytes:
        """Answer AlterConfigs and IncrementalAlterConfigs."""
        return await self._answer(call, "responses")

    async def _answer(self, call: Call, field: str) -> Body | bytes:
        """Pass a request on as it is if one node has all its resources; else split it, and join the
        answers.
        """
        places: dict[_Place, list[Body]] = {}
        for resource in call.body["resources"]:
            places.setdefault(self._place(call, resource), []).append(resource)
        try:
            if len(places) == 1 and _HERE not in places:
                [place] = places
                answer = await self._pass_on(call, call.frame, place)
                return response_body(call.header.api_key, call.version, answer)
            parts = await asyncio.gather(
                *(self._part(call, field, *resources_at) for resources_at in places.items())
            )
        except (BrokerFailed, WireError) as error:
            raise HangUp(str(error)) from error
        answers = {_name(answer): answer for part in parts for answer in part}
        return {field: [answers[_name(resource)] for resource in call.body["resources"]]}

    def _place(self, call: Call, resource: Body) -> _Place:
        if resource["resource_type"] not in _OF_ONE_BROKER or not resource["resource_name"]:
            return None
        name: str = resource["resource_name"]
        broker_id = int(name) if _BROKER_ID.fullmatch(name) else None
        if broker_id is None or not self._brokers.is_there(call.listener.name, broker_id):
            return _HERE
        return broker_id

    async def _part(
        self, call: Call, field: str, place: _Place, resources: list[Body]
    ) -> list[Body]:
        if place == _HERE:
            describing = field == "results"
            return [self._answer_here(one, describing) for one in resources]
        key, version = call.header.api_key, call.version
        body = call.body | {"resources": resources}
        request = encode_request(key, version, 0, call.header.client_id, body)
        answer = await self._pass_on(call, request, place)
        results: list[Body] = decode_response(key, version, answer)[1][field]
        return results

    async def _pass_on(self, call: Call, request: bytes, place: _Place) -> bytes:
        broker_id = place if isinstance(place, int) else None
        return await self._brokers.pass_on(call.listener.name, request, broker_id)

    def _answer_here(self, resource: Body, describing: bool) -> Body:
        kind, name = _name(resource)
        error, message = ProtocolError.INVALID_REQUEST, None
        if name != str(self._node_id):
            message = f"there is no broker {name!r} to ask"
        elif kind != ConfigResourceType.BROKER:
            message = f"node {name} has no loggers whose levels could be asked for or set"
        elif not describing and any(map(_sets, resource["configs"])):
            message = f"node {name} takes its configs when it starts; none can be set"
        else:
            error = ProtocolError.NONE
        answer: Body = {
            "error_code": error,
            "error_message": message and shortened(message),
            "resource_type": kind,
        }
        answer["resource_name"] = name
        if describing:
            shown = error == ProtocolError.NONE
            answer["configs"] = self._own_configs(resource["configuration_keys"]) if shown else []
        return answer

    def _own_configs(self, asked: list[str] | None) -> list[Body]:
        return [
            {
                "name": name,
                "value": value,
                "read_only": True,
                "config_source": _STATIC_BROKER_CONFIG,
                "is_default": False,  # version 0 in place of the source
                "is_sensitive": value is None,
                "synonyms": [],
            }
            for name, value in sorted(self._own.items())
            if asked is None or name in asked
        ]


def _sets(config: Body) -> bool:
    """Return whether a value is set, as every entry of AlterConfigs does.

    Tools delete throttles at every node; this one never has any.
    """
    return bool(config.get("config_operation", _SET) != _DELETE)


def _name(resource: Body) -> tuple[int, str]:
    return resource["resource_type"], resource["resource_name"]
