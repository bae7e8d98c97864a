"""Delegation tokens as brokers write and read them."""

from __future__ import annotations

import orjson
import pytest

from streaming.security.delegation_tokens import DelegationToken
from streaming.zk.znodes.delegation_tokens import parse_token, token_bytes

TOKEN = DelegationToken(
    "Wy_1-x", "User:a b*~", "User:a b*~", ("User:c", "User:d:e"), 1_000, 2_000, 3_000
)
WRITTEN = {
    "version": 1,
    "owner": "User%3Aa%20b%2A%7E",
    "renewers": ["User%3Ac", "User%3Ad%3Ae"],
    "issueTimestamp": 1000,
    "expiryTimestamp": 2000,
    "maxTimestamp": 3000,
    "tokenId": "Wy_1-x",
}


def test_a_token_of_its_owner_is_written_so_that_every_release_reads_it() -> None:
    assert orjson.loads(token_bytes(TOKEN)) == WRITTEN
    assert parse_token(orjson.dumps(WRITTEN)) == TOKEN


def test_who_asked_for_a_token_for_somebody_else_is_written_as_since_3_3() -> None:
    other = DelegationToken("t", "User:a", "User:boss", (), 1, 2, 3)
    written = orjson.loads(token_bytes(other))
    assert (written["version"], written["tokenRequester"]) == (3, "User%3Aboss")
    assert parse_token(token_bytes(other)) == other


def test_a_token_of_the_newest_version_may_be_its_owners_too() -> None:
    body = WRITTEN | {"version": 3, "tokenRequester": WRITTEN["owner"]}
    assert parse_token(orjson.dumps(body)) == TOKEN


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 4}, "version 4 is not known"),
        ({"version": 0}, "version 0 is not known"),
        ({"version": 3}, "tokenRequester"),
        ({"owner": "alice"}, "'alice' is no principal"),
        ({"renewers": [1]}, "broken znode"),
        ({"renewers": None}, "broken znode"),
        ({"maxTimestamp": "soon"}, "broken znode"),
        ({"maxTimestamp": 1 << 70}, "broken znode"),
    ],
)
def test_a_token_that_cannot_be_read_says_why(change: dict[str, object], says: str) -> None:
    body = WRITTEN | change
    data = orjson.dumps(body) if body["maxTimestamp"] != 1 << 70 else b'{"version":1e99}'
    with pytest.raises(ValueError, match=says):
        parse_token(data)


@pytest.mark.parametrize("data", [b"", b"x", b"[]", b"null"])
def test_what_is_no_token_is_told(data: bytes) -> None:
    with pytest.raises(ValueError, match="broken znode"):
        parse_token(data)


def test_a_token_ends_with_the_first_of_its_two_ends() -> None:
    ends = [DelegationToken("t", "User:a", "User:a", (), 0, *two) for two in ((5, 9), (9, 5))]
    assert [one.end_ms for one in ends] == [5, 5]
    assert [ends[0].has_expired(now_ms) for now_ms in (4, 5, 6)] == [False, False, True]
