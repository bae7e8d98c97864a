"""Delegation tokens that have expired become events, when it is time to look for them."""

from __future__ import annotations

import time

from streaming.security.delegation_tokens import DelegationToken
from streaming.zk.znodes.delegation_tokens import TOKENS_PATH, token_bytes, token_path
from tests.fixtures.waiting import wait_for
from tests.integration.front.harness import put_broker

HOUR_MS = 3_600_000


def put_token(session, name: str, *, ends_in_ms: int) -> int:
    """Put a token of alice's, and return when it ends."""
    now_ms = time.time_ns() // 1_000_000
    end_ms = now_ms + ends_in_ms
    token = DelegationToken(name, "User:alice", "User:alice", (), 0, end_ms, now_ms + 9 * HOUR_MS)
    session.ensure_path(TOKENS_PATH)
    session.create(token_path(name), token_bytes(token))
    return end_ms


def expired(name: str, end_ms: int) -> dict[str, object]:
    return {
        "token_id": name,
        "owner": "User:alice",
        "expired_at_ms": end_ms,
        "zk_version": 0,
    }


def test_they_are_looked_for_after_the_load_and_then_each_interval(zk_session, start_with_job):
    put_broker(zk_session, 1)
    gone_ms = put_token(zk_session, "gone", ends_in_ms=-1)
    put_token(zk_session, "good", ends_in_ms=HOUR_MS)
    zk_session.create(token_path("broken"), b"{}")
    interval = {"delegation.token.expiry.check.interval.ms": 400}
    front = start_with_job(**interval)
    assert front.wait_events("delegation_tokens_expired", 1)[0] == {
        "tokens": [expired("gone", gone_ms)]
    }
    kinds = [kind for kind, _, _ in front.events()]
    assert kinds.index("resync_completed") < kinds.index("delegation_tokens_expired")
    zk_session.delete(token_path("gone"))
    short_ms = put_token(zk_session, "short", ends_in_ms=300)

    def found() -> list[object]:
        return [one["tokens"] for one in front.of_kind("delegation_tokens_expired")]

    wait_for("the next one", lambda: [expired("short", short_ms)] in found())
    assert time.time_ns() // 1_000_000 > short_ms
    assert front.status()["counters"]["broken_delegation_tokens"] >= 2


def test_without_tokens_there_is_no_event(zk_session, start_with_job):
    put_broker(zk_session, 1)
    front = start_with_job(**{"delegation.token.expiry.check.interval.ms": 50})
    front.wait_role("active")
    end = len(front.events())
    time.sleep(0.5)
    assert len(front.events()) == end
