"""Deletes delegation tokens that have expired, and has brokers forget them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from state.bodies import DeleteDelegationToken
from state.decisions import DecisionKind
from streaming.sinks.batch import DecidedBatch, SinkDecision
from streaming.zk.client import ZkSession
from streaming.zk.errors import ConnectionLost, RequestFailed
from streaming.zk.fenced import FencedWriter
from streaming.zk.ops import Delete
from streaming.zk.outcomes import OutcomeKind
from streaming.zk.tokens import tell_of_token
from streaming.zk.znodes.delegation_tokens import token_path

logger = logging.getLogger(__name__)


def delete_tokens(
    session: ZkSession, writer: FencedWriter, batch: DecidedBatch, decisions: Sequence[SinkDecision]
) -> None:
    """Make the delete_delegation_token decisions among others true, and note those that failed.

    One that is gone already counts as deleted, and brokers are told of it again: who repeats this
    after a crash does not know whether they were. One that was renewed since stays, as one does
    that ZooKeeper does not let go; it is looked at again at the next check.
    """
    of_tokens = [one for one in decisions if one.kind is DecisionKind.DELETE_DELEGATION_TOKEN]
    outcomes = writer.write([_delete(one) for one in of_tokens]) if of_tokens else []
    for decision, outcome in zip(of_tokens, outcomes, strict=True):
        body: DeleteDelegationToken = decision.content
        if outcome.kind is OutcomeKind.WRITTEN:
            logger.info("delegation token %s of %s has expired", body["token_id"], body["owner"])
            _tell(session, body["token_id"])
            continue
        decision.failed = True
        if outcome.kind is OutcomeKind.FENCED:
            batch.fenced.add(decision.fence)
        else:
            logger.warning("delegation token %s stays: %s", body["token_id"], _why(outcome.reason))


def _delete(decision: SinkDecision) -> Delete:
    body: DeleteDelegationToken = decision.content
    return Delete(token_path(body["token_id"]), body["expected_version"])


def _why(reason: str) -> str:
    return reason or "it has changed since it was found to have expired"


def _tell(session: ZkSession, token_id: str) -> None:
    """Tell brokers that a token is gone; once too often does no harm. Raises ZooKeeperUnreachable,
    SessionLost.
    """
    while True:
        try:
            tell_of_token(session, token_id)
        except ConnectionLost:
            session.wait_until_held(session.session_timeout_ms / 1000)
            continue
        except RequestFailed as error:
            logger.warning("brokers do not hear that token %s is gone: %s", token_id, error)
        return
