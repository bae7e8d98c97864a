"""Credentials of users are checked, derived and kept as brokers read them."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from state.protocol_errors import ProtocolError
from streaming.wire.apis import ApiKey
from tests.unit.gateway.support import Rig, with_gateway

SHA_256, SHA_512 = 1, 2
# RFC 7677, section 3: user "user", password "pencil".
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SALTED = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
CREDENTIAL = (
    "salt=W22ZaJ0SNY7soEsUEjb6gQ==,"
    "stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=,"
    "server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,"
    "iterations=4096"
)


def setting(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> dict[str, Any]:
    return {
        "name": name,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": SALT,
        "salted_password": SALTED,
    }


def deletion(name: str, mechanism: int = SHA_256) -> dict[str, Any]:
    return {"name": name, "mechanism": mechanism}


async def alter(
    rig: Rig, upsertions: list[dict[str, Any]], deletions: list[dict[str, Any]] | None = None
) -> dict[str, int]:
    body = {"upsertions": upsertions, "deletions": deletions or []}
    answer = await rig.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, body)
    return {one["user"]: one["error_code"] for one in answer["results"]}


def test_a_credential_is_what_the_rfc_says() -> None:
    async def scenario(rig: Rig) -> None:
        assert await alter(rig, [setting("user")]) == {"user": 0}
        assert rig.cluster.users.configs == {"user": {"SCRAM-SHA-256": CREDENTIAL}}

    with_gateway(scenario)


def test_all_changes_of_a_user_are_made_or_none() -> None:
    async def scenario(rig: Rig) -> None:
        assert await alter(rig, [setting("a"), setting("b", SHA_512)]) == {"a": 0, "b": 0}
        both = await alter(rig, [setting("a", SHA_512)], [deletion("a"), deletion("b")])
        assert both == {"a": 0, "b": ProtocolError.RESOURCE_NOT_FOUND}
        found = {user: list(configs) for user, configs in rig.cluster.users.configs.items()}
        assert found == {"a": ["SCRAM-SHA-512"], "b": ["SCRAM-SHA-512"]}
        assert await alter(rig, [], [deletion("nobody")]) == {
            "nobody": ProtocolError.RESOURCE_NOT_FOUND
        }

    with_gateway(scenario)


@pytest.mark.parametrize(
    ("upsertions", "deletions", "error"),
    [
        ([setting("")], [], ProtocolError.UNACCEPTABLE_CREDENTIAL),
        ([], [deletion("")], ProtocolError.UNACCEPTABLE_CREDENTIAL),
        ([setting("u", 0)], [], ProtocolError.UNSUPPORTED_SASL_MECHANISM),
        ([setting("u", 3)], [], ProtocolError.UNSUPPORTED_SASL_MECHANISM),
        ([], [deletion("u", 9)], ProtocolError.UNSUPPORTED_SASL_MECHANISM),
        ([setting("u", iterations=4095)], [], ProtocolError.UNACCEPTABLE_CREDENTIAL),
        ([setting("u", iterations=16385)], [], ProtocolError.UNACCEPTABLE_CREDENTIAL),
        ([setting("u"), setting("u")], [], ProtocolError.DUPLICATE_RESOURCE),
        ([setting("u")], [deletion("u")], ProtocolError.DUPLICATE_RESOURCE),
        ([setting("u"), setting("u", 3)], [], ProtocolError.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_what_is_refused_changes_nothing_and_costs_nobody_else(
    upsertions: list[dict[str, Any]], deletions: list[dict[str, Any]], error: int
) -> None:
    async def scenario(rig: Rig) -> None:
        results = await alter(rig, [*upsertions, setting("other")], deletions)
        [(user, found)] = [(user, code) for user, code in results.items() if user != "other"]
        assert (found, results["other"]) == (error, 0)
        assert user not in rig.cluster.users.configs

    with_gateway(scenario)


def test_what_cannot_be_kept_and_who_is_not_the_controller() -> None:
    async def scenario(rig: Rig) -> None:
        rig.cluster.users.fail = OSError("ZooKeeper is away")
        assert await alter(rig, [setting("u")]) == {"u": ProtocolError.UNKNOWN_SERVER_ERROR}
        rig.cluster.controller = False
        assert await alter(rig, [setting("u")]) == {"u": ProtocolError.NOT_CONTROLLER}

    with_gateway(scenario)
