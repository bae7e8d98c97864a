"""The table of what the gateway serves about groups: API key -> handler."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.gateway.calls import AtOnce, Handler, WithoutTask
from streaming.gateway.groups.membership import Membership
from streaming.gateway.groups.offsets import Offsets
from streaming.gateway.groups.overview import Overview
from streaming.gateway.groups.requests import GroupRequests
from streaming.wire.apis import ApiKey


def group_apis(
    requests: GroupRequests, *, static_members: bool
) -> Mapping[int, Handler | AtOnce | WithoutTask]:
    """Return the handlers of members' and administrators' requests; static_members as Membership
    takes it.
    """
    membership = Membership(requests, static_members=static_members)
    offsets, overview = Offsets(requests), Overview(requests)
    return {
        ApiKey.OFFSET_COMMIT: WithoutTask(requests.service.try_commit, offsets.commit),
        ApiKey.OFFSET_FETCH: offsets.fetch,
        ApiKey.JOIN_GROUP: WithoutTask(membership.join),
        ApiKey.HEARTBEAT: AtOnce(membership.heartbeat),
        ApiKey.LEAVE_GROUP: membership.leave,
        ApiKey.SYNC_GROUP: WithoutTask(membership.sync),
        ApiKey.DESCRIBE_GROUPS: overview.describe,
        ApiKey.LIST_GROUPS: overview.list,
        ApiKey.TXN_OFFSET_COMMIT: offsets.commit_in_transaction,
        ApiKey.DELETE_GROUPS: overview.delete,
        ApiKey.OFFSET_DELETE: offsets.delete,
    }
