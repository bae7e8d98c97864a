"""Delegation tokens that have expired: they are the controller's to delete."""

from __future__ import annotations

from state.bodies import DeleteDelegationToken
from state.cluster.cluster import Cluster
from state.decisions import Decision, DecisionKind, json_decision
from state.events import Event
from state.payloads.tokens import DelegationTokensExpired, ExpiredToken


def on_delegation_tokens_expired(
    cluster: Cluster, event: Event, expired: DelegationTokensExpired
) -> list[Decision]:
    """Delete each token unless it was renewed since (DelegationTokenManagerZk.expireTokens)."""
    if not cluster.authority.is_loaded:
        return []
    return [_delete(cluster, event, one) for one in expired.tokens]


def _delete(cluster: Cluster, event: Event, token: ExpiredToken) -> Decision:
    body: DeleteDelegationToken = {
        "token_id": token.token_id,
        "owner": token.owner,
        "expired_at_ms": token.expired_at_ms,
        "expected_version": token.zk_version,
        **cluster.authority.fence(),
    }
    return json_decision(event.offset, DecisionKind.DELETE_DELEGATION_TOKEN, body)
