"""Delegation tokens that brokers keep: all of them read, and brokers told of one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from streaming.security.delegation_tokens import DelegationToken
from streaming.zk.client import ZkSession
from streaming.zk.multiread import read_many
from streaming.zk.reader import ZkReader
from streaming.zk.znodes.delegation_tokens import (
    TOKENS_PATH,
    parse_token,
    token_change_bytes,
    token_change_prefix,
    token_path,
)

logger = logging.getLogger(__name__)


def tell_of_token(session: ZkSession, token_id: str) -> None:
    """Have brokers read a token again (TokenChangedNotificationHandler), which forget one that is
    gone. Errors as `ZkSession.create_sequential`.
    """
    session.create_sequential(token_change_prefix(), token_change_bytes(token_id))


def read_tokens(
    session: ZkReader, passed_over: Callable[[], None] = lambda: None
) -> Iterator[tuple[DelegationToken, int]]:
    """Return each token with the version of its znode; none where brokers have no tokens.

    One that cannot be read is logged, and passed_over called. Errors as `read_many`.
    """
    paths = [token_path(name) for name in session.children(TOKENS_PATH) or ()]
    if not paths:
        return
    columns = read_many(session, paths)
    for path, data, version in zip(paths, columns.data, columns.version.tolist(), strict=True):
        if data is None:
            continue
        try:
            token = parse_token(data)
            if token_path(token.token_id) != path:
                raise ValueError(f"it is about token {token.token_id!r}")
        except ValueError as error:
            logger.warning("%s is passed over: %s", path, error)
            passed_over()
        else:
            yield token, version
