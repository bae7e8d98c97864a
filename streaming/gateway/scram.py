"""AlterUserScramCredentials: passwords of users, as brokers read them from ZooKeeper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from state.protocol_errors import ProtocolError
from streaming.gateway.admin import AdminRequests
from streaming.gateway.calls import Call
from streaming.gateway.ports import UserConfigs
from streaming.security.scram import MECHANISMS, credential_of_password, credential_text
from streaming.wire.schema_codec import Body

_ITERATIONS_MIN, _ITERATIONS_MAX = 4096, 16384

_Fault = tuple[int, str]
"""Error code and message."""
_NO_NAME = (ProtocolError.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
_NO_MECHANISM = (ProtocolError.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
_TOO_FEW = (ProtocolError.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
_TOO_MANY = (ProtocolError.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
_TWICE = (
    ProtocolError.DUPLICATE_RESOURCE,
    "A user credential cannot be altered twice in the same request",
)
_NOT_THERE = (
    ProtocolError.RESOURCE_NOT_FOUND,
    "Attempt to delete a user credential that does not exist",
)


class AlterUserScramCredentials:
    """Answers AlterUserScramCredentials (ZkAdminManager.alterUserScramCredentials).

    Of one user all changes are made or none. Only the controller takes them, so that two changes of
    a user do not overtake each other.
    """

    def __init__(self, requests: AdminRequests, users: UserConfigs) -> None:
        """Take who knows whether this node is the controller, and where users are kept."""
        self._requests = requests
        self._users = users

    async def handle(self, call: Call) -> Body:
        """Answer once everything is in ZooKeeper; one result per user."""
        deletions, upsertions = call.body["deletions"], call.body["upsertions"]
        names = list(dict.fromkeys(one["name"] for one in [*deletions, *upsertions]))
        results = []
        for name in names:
            gone = [one for one in deletions if one["name"] == name]
            set_ = [one for one in upsertions if one["name"] == name]
            error, message = await self._alter(name, gone, set_)
            results.append({"user": name, "error_code": error, "error_message": message})
        return {"results": results}

    async def _alter(
        self, name: str, deletions: list[Body], upsertions: list[Body]
    ) -> tuple[int, str | None]:
        if not self._requests.ready():
            return ProtocolError.NOT_CONTROLLER, None
        fault = _fault(name, deletions, upsertions)
        if fault is not None:
            return fault
        changes: dict[str, str | None] = dict.fromkeys(map(_key, deletions))
        changes |= {_key(one): _credential(one) for one in upsertions}
        try:
            done = await self._users.alter(name, changes)
        except OSError as error:
            return ProtocolError.UNKNOWN_SERVER_ERROR, str(error)
        return (ProtocolError.NONE, None) if done else _NOT_THERE


def _fault(name: str, deletions: list[Body], upsertions: list[Body]) -> _Fault | None:
    """Return what is wrong with the changes of one user, None when nothing is."""
    both = [*deletions, *upsertions]
    if not name:
        return _NO_NAME
    if any(one["mechanism"] not in MECHANISMS for one in both):
        return _NO_MECHANISM
    if any(one["iterations"] > _ITERATIONS_MAX for one in upsertions):
        return _TOO_MANY
    if any(one["iterations"] < _ITERATIONS_MIN for one in upsertions):
        return _TOO_FEW
    return _TWICE if _any_twice(one["mechanism"] for one in both) else None


def _any_twice(mechanisms: Iterable[int]) -> bool:
    return any(times > 1 for times in Counter(mechanisms).values())


def _key(change: Body) -> str:
    return MECHANISMS[change["mechanism"]]


def _credential(upsertion: Body) -> str:
    """Return a credential as brokers read it."""
    return credential_text(
        credential_of_password(
            _key(upsertion),
            upsertion["salted_password"],
            upsertion["salt"],
            upsertion["iterations"],
        )
    )
