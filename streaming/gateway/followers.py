"""Which broker asks as the follower of a leader: each request says it in its own way."""

from __future__ import annotations

import re

from streaming.wire import since
from streaming.wire.requests import RequestHeader
from streaming.wire.schema_codec import Body

_FETCHER = re.compile(r"broker-([0-9]{1,10})-fetcher-[0-9]+")
"""The client id of a broker's replica fetcher (ReplicaFetcherThread)."""


def follower_that_fetches(body: Body) -> int | None:
    """Return the broker that sends a Fetch, None for a consumer."""
    state = body["replica_state"]
    return _broker(body["replica_id"] if state is None else state["replica_id"])


def follower_that_asks_for_epochs(header: RequestHeader, body: Body) -> int | None:
    """Return the broker that sends an OffsetForLeaderEpoch, None for a consumer.

    With an inter-broker protocol of 2.1 and 2.2 only the client id tells them apart.
    """
    if header.api_version >= since.EPOCHS_REPLICA_ID:
        return _broker(body["replica_id"])
    found = _FETCHER.fullmatch(header.client_id or "")
    return None if found is None else int(found[1])


def _broker(replica_id: int) -> int | None:
    return replica_id if replica_id >= 0 else None
