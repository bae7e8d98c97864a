"""Delegation tokens that have expired, in a real ZooKeeper."""

from __future__ import annotations

import pytest

from state.decisions import DecisionKind
from streaming.sinks.batch import DecidedBatch
from streaming.zk.claim import claim_controller
from streaming.zk.znodes.delegation_tokens import TOKEN_CHANGES_PATH, TOKENS_PATH
from tests.integration.sinks.support import write


def expire(job, *tokens: tuple[str, int]) -> DecidedBatch:
    found = [
        {"token_id": name, "owner": "User:u", "expired_at_ms": 5, "zk_version": version}
        for name, version in tokens
    ]
    job.story.write("delegation_tokens_expired", tokens=found)
    decided: DecidedBatch = job.decide()
    return decided


def failed(batch: DecidedBatch) -> list[bool]:
    return [one.failed for one in batch.of_kind(DecisionKind.DELETE_DELEGATION_TOKEN)]


def told(session) -> dict[str, str]:
    names = session.children(TOKEN_CHANGES_PATH)
    return {name: session.get(f"{TOKEN_CHANGES_PATH}/{name}").data.decode() for name in names}


@pytest.fixture
def tokens(zk_session):
    zk_session.ensure_path(TOKEN_CHANGES_PATH)
    for name in ("a", "b", "c"):
        zk_session.ensure_path(f"{TOKENS_PATH}/{name}")
    return zk_session


def test_they_go_and_brokers_are_told_but_one_that_was_renewed_stays(tokens, sink, job):
    tokens.set(f"{TOKENS_PATH}/b", b"renewed")
    write(sink, batch := expire(job, ("a", 0), ("b", 0), ("c", 0)))
    assert tokens.children(TOKENS_PATH) == ["b"]
    assert told(tokens) == {"token_change_0000000000": "a", "token_change_0000000001": "c"}
    assert failed(batch) == [False, True, False]
    assert not batch.lost_writes


def test_what_is_gone_already_is_told_again(tokens, sink, job):
    batch = expire(job, ("a", 0))
    write(sink, batch)
    write(sink, batch)  # as after a crash
    assert failed(batch) == [False]
    assert [*told(tokens).values()] == ["a", "a"]


def test_who_is_no_controller_any_more_deletes_none(tokens, sink, job):
    batch = expire(job, ("a", 0))
    claim_controller(tokens, 9, steal=True)
    write(sink, batch)
    assert failed(batch) == [True]
    assert batch.fenced
    assert tokens.children(TOKENS_PATH) == ["a", "b", "c"]
    assert told(tokens) == {}


def test_where_nobody_can_be_told_they_go_all_the_same(tokens, sink, job, caplog):
    tokens.delete(TOKEN_CHANGES_PATH)
    write(sink, batch := expire(job, ("a", 0)))
    assert failed(batch) == [False]
    assert tokens.children(TOKENS_PATH) == ["b", "c"]
    assert "brokers do not hear that token a is gone" in caplog.text
