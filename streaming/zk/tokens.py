"""Reads all delegation tokens that brokers keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streaming.security.delegation_tokens import DelegationToken
from streaming.zk.multiread import read_many
from streaming.zk.reader import ZkReader
from streaming.zk.znodes.delegation_tokens import TOKENS_PATH, parse_token, token_path


def read_tokens(
    session: ZkReader, pass_over: Callable[[str, ValueError], None]
) -> Iterator[tuple[DelegationToken, int]]:
    """Return each token with the version of its znode; none where brokers have no tokens.

    pass_over: gets the path of one that cannot be read, and why. Errors as `read_many`.
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
            pass_over(path, error)
        else:
            yield token, version
