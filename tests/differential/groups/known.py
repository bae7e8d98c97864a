"""The differences that are meant, each as narrow as its line in docs/differences.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from state.protocol_errors import ProtocolError
from streaming.wire.apis import ApiKey
from tests.differential.groups.model import Group
from tests.differential.groups.side import Request

Known = Callable[[Request, Group, Any, Any], bool]

_ID_REQUIRED_SINCE = 4


def _another_leads(request: Request, group: Group, stock: Any, ours: Any) -> bool:
    """The last leader is gone, and each has made another one of its members the leader."""
    if not _both_joined(request, stock, ours):
        return False
    return stock["leader"] != ours["leader"] and group.leader not in (
        stock["leader"],
        ours["leader"],
    )


def _undecided(request: Request, group: Group, stock: Any, ours: Any) -> bool:
    """As many members would have the one protocol as the other."""
    if not _both_joined(request, stock, ours):
        return False
    chosen = {stock["protocol_name"], ours["protocol_name"]}
    return len(chosen) > 1 and chosen == group.favourites(stock["generation_id"])


def _both_joined(request: Request, stock: Any, ours: Any) -> bool:
    if request.api is not ApiKey.JOIN_GROUP or stock is None or ours is None:
        return False
    return stock["error_code"] == ours["error_code"] == ProtocolError.NONE


def _hears_it_later(request: Request, group: Group, stock: Any, ours: Any) -> bool:
    """Ours gives an id to a new member, and will look at its request when it comes back."""
    if request.api is not ApiKey.JOIN_GROUP or stock is None or ours is None:
        return False
    body = request.body
    is_new = not body["member_id"] and body["group_instance_id"] is None
    said = ours["error_code"] == ProtocolError.MEMBER_ID_REQUIRED
    refused = stock["error_code"] != ProtocolError.NONE
    return is_new and request.version >= _ID_REQUIRED_SINCE and said and refused


def _hears_that_it_is_none(request: Request, group: Group, stock: Any, ours: Any) -> bool:
    """Somebody else removed a member that awaits its assignment, which ours tells it."""
    if request.api is not ApiKey.SYNC_GROUP or stock is not None or ours is None:
        return False
    return bool(ours["error_code"] == ProtocolError.UNKNOWN_MEMBER_ID)


KNOWN: Sequence[tuple[str, Known]] = (
    ("who leads when the leader is gone", _another_leads),
    ("as many votes for one protocol as for another", _undecided),
    (
        "a new dynamic member about whose request something is wrong (session timeout, protocols,"
        " a full group)",
        _hears_it_later,
    ),
    ("a member that awaits its assignment is removed", _hears_that_it_is_none),
)
"""What the first column of the table says, and how it shows in answers; None is none."""


def name_of(request: Request, group: Group, stock: Any, ours: Any) -> str | None:
    """Return what the difference between two answers is called, None when nobody knows it."""
    return next((name for name, known in KNOWN if known(request, group, stock, ours)), None)
