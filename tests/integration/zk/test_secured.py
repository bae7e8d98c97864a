"""Sessions with real ZooKeepers that want to know who connects, by a certificate or a password;
whom znodes are for.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.front.scram_credentials import ZkScramCredentials
from streaming.front.user_configs import ZkUserConfigs
from streaming.security.identity import Undecided
from streaming.security.scram import ScramCredential, credential_text
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.zk.claim import ClaimForbidden, ControllerClaim, claim_controller
from streaming.zk.client import ZkSession
from streaming.zk.errors import (
    AuthenticationFailed,
    RequestFailed,
    ZkErrorCode,
    ZooKeeperUnreachable,
)
from streaming.zk.opening import reader_of, session_of
from streaming.zk.ops import CREATORS_ACL, Create, SetData
from streaming.zk.types import SessionState
from tests.fixtures.certificates import Authority
from tests.fixtures.jaas import jaas_file, login
from tests.fixtures.secured_zookeeper import secured_zookeeper, zookeeper_with_passwords
from tests.fixtures.waiting import WAIT_S

T = TypeVar("T")
MANY = 3_000
LARGE = bytes(2_000)


@dataclass(frozen=True)
class Secured:
    """A ZooKeeper and who signs for it."""

    server: EmbeddedZooKeeper
    connect: str
    authority: Authority
    key: Path

    def settings(self, *overrides: str) -> Settings:
        """How a node reaches it."""
        given = [
            f"zookeeper.connect={self.connect}",
            "zookeeper.session.timeout.ms=10000",
            "zookeeper.connection.timeout.ms=4000",
            "zookeeper.ssl.client.enable=true",
            f"zookeeper.ssl.keystore.location={self.key}",
            f"zookeeper.ssl.truststore.location={self.authority.trusted}",
            *overrides,
        ]
        return load_settings(overrides=given, environment={})


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder / "authority")
    server, connect = secured_zookeeper(folder / "zookeeper", authority)
    with server:
        yield Secured(server, connect, authority, authority.keystore("helmstream"))


def test_reads_and_writes_pass_through_without_a_halt(secured: Secured) -> None:
    """Answers that were decrypted together are taken together: none waits for the next ping."""
    with session_of(secured.settings()) as session:
        session.ensure_path("/many")
        paths = [f"/many/{number}" for number in range(MANY)]
        parts = [paths[at : at + 200] for at in range(0, MANY, 200)]
        pending = [session.multi_async([Create(one, LARGE) for one in part]) for part in parts]
        for part, one in zip(parts, pending, strict=True):
            assert one.result(2.0) == [(0, 0)] * len(part)
        small = [session.multi_async([SetData(path, b"x", 0)]) for path in paths]
        assert {one.result(2.0)[0] for one in small} == {(0, 1)}
        assert session.get("/many/7") is not None
    with reader_of(secured.settings()) as reader:
        assert len(reader.children("/many") or ()) == MANY


def test_a_claim_is_made_in_tls(secured: Secured) -> None:
    with session_of(secured.settings()) as session:
        claim = claim_controller(session, 1000, steal=True)
        assert isinstance(claim, ControllerClaim)


@pytest.mark.parametrize("otherwise", ["stranger", "another host", "without a certificate"])
def test_who_is_not_trusted_or_does_not_trust_gets_no_session(
    secured: Secured, tmp_path: Path, otherwise: str
) -> None:
    stranger = Authority(tmp_path / "stranger")
    given = {
        "stranger": [f"zookeeper.ssl.truststore.location={stranger.trusted}"],
        "another host": [f"zookeeper.connect={secured.connect.replace('127.0.0.1', 'localhost')}"],
        "without a certificate": ["zookeeper.ssl.keystore.location="],
    }[otherwise]
    settings = secured.settings(*given)
    with pytest.raises(ZooKeeperUnreachable):
        session_of(settings).connect(2_000)
    if otherwise == "another host":
        left_open = "zookeeper.ssl.endpoint.identification.algorithm="
        with session_of(secured.settings(*given, left_open)) as session:
            assert session.get("/") is not None


def test_a_claim_for_a_name_that_zookeeper_does_not_know_says_so(
    secured: Secured,
) -> None:
    plain = ZkSession(secured.server.connect_string, 10_000, default_acl=CREATORS_ACL)
    with plain, pytest.raises(ClaimForbidden, match="no name for it"):
        claim_controller(plain, 1000, steal=True)


def test_znodes_are_for_who_made_them(secured: Secured) -> None:
    settings = secured.settings("zookeeper.set.acl=true")
    with session_of(settings) as session:
        session.multi([Create("/ours", b"1")])
        session.create("/ours/too")
    asyncio.run(ZkUserConfigs(settings).alter("alice", {"producer_byte_rate": "7"}))
    with ZkSession(secured.server.connect_string, 10_000) as anybody:
        found = anybody.get("/ours")
        assert found is not None and found.data == b"1"
        for path in ("/ours", "/ours/too"):
            with pytest.raises(RequestFailed) as refused:
                anybody.set(path, b"2")
            assert refused.value.code == ZkErrorCode.NO_AUTH
        for path in ("/config/users", "/config/users/alice"):
            with pytest.raises(RequestFailed) as hidden:
                anybody.children(path)
            assert hidden.value.code == ZkErrorCode.NO_AUTH
    with session_of(settings) as session:
        session.set("/ours", b"3")
        assert session.get("/config/users/alice") is not None


def _hang_up_once_asked_who(port: int) -> None:
    """Be a ZooKeeper that goes on with one session, and dies when the client says who it is."""
    with socket.create_server(("127.0.0.1", port)) as server:
        server.settimeout(30.0)
        connection, _ = server.accept()
        with connection:
            connection.settimeout(30.0)
            asked = connection.recv(4_096)
            (size_bytes, _, _, timeout_ms, session_id) = struct.unpack_from(">iiqiq", asked)
            password = asked[28 : size_bytes + 3]  # with its length; the last byte is "read-only"
            answer = struct.pack(">iiq", 0, timeout_ms, session_id) + password + b"\0"
            connection.sendall(struct.pack(">i", len(answer)) + answer)
            assert connection.recv(4_096)


async def _once_decided(find: Callable[[], Awaitable[T]]) -> T:
    """What is found once there is a session again, for which nobody waits who asks."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                return await find()
            except Undecided:
                await asyncio.sleep(0.05)


def test_who_logs_in_is_found_again_after_zookeeper_died_at_the_first_login(
    tmp_path: Path,
) -> None:
    path = jaas_file(tmp_path / "jaas", {"Client": {"DigestLoginModule": login("kafka", "hush")}})
    credential = ScramCredential(b"salt", b"stored", b"server", 4096)
    mechanism = "SCRAM-SHA-256"

    async def found() -> ScramCredential | None:
        credentials = ZkScramCredentials(settings)
        dying = asyncio.to_thread(_hang_up_once_asked_who, server.port)
        # No session: where the attempt's time is over before the connection is known to be.
        with pytest.raises(Undecided, match=r"refused the credentials|no session"):
            await asyncio.gather(credentials.find(mechanism, "alice"), dying)
        await asyncio.to_thread(server.start)
        await ZkUserConfigs(settings).alter("alice", {mechanism: credential_text(credential)})
        assert await _once_decided(lambda: credentials.find(mechanism, "bob")) is None
        await credentials.find(mechanism, "alice")
        await asyncio.to_thread(server.stop)
        with pytest.raises(Undecided):
            await credentials.find(mechanism, "carol")
        last = await credentials.find(mechanism, "alice")
        await credentials.close()
        return last

    server = zookeeper_with_passwords(tmp_path / "zookeeper", kafka="hush")
    settings = load_settings(
        overrides=[
            f"zookeeper.connect={server.connect_string}",
            f"java.security.auth.login.config={path}",
            "zookeeper.session.timeout.ms=4000",
        ],
        environment={},
    )
    try:
        assert asyncio.run(found()) == credential
    finally:
        server.stop()


def test_a_password_is_a_name_too(tmp_path: Path) -> None:
    """One that was good once stays good while ZooKeeper is away and hangs up as it comes back."""

    def settings(user: str, password: str) -> Settings:
        named = {"DigestLoginModule": login(user, password)}
        path = jaas_file(tmp_path / f"{user}-{password}", {"Client": named})
        given = {
            "zookeeper.connect": server.connect_string,
            "zookeeper.session.timeout.ms": "10000",
            "zookeeper.set.acl": "true",
            "java.security.auth.login.config": path,
        }
        return load_settings(overrides=[f"{key}={value}" for key, value in given.items()])

    with zookeeper_with_passwords(tmp_path / "zookeeper", kafka="hush", other="x") as server:
        ours = settings("kafka", "hush")
        with session_of(ours) as session, session_of(settings("other", "x")) as other:
            heard: list[SessionState] = []
            session.add_state_listener(heard.append)
            session.create("/ours", b"1")
            server.kill()
            _hang_up_once_asked_who(server.port)
            server.start()
            session.wait_until_held(10.0)
            assert SessionState.LOST not in heard
            session.set("/ours", b"2")
            with pytest.raises(RequestFailed) as refused:
                other.set("/ours", b"3")
            assert refused.value.code == ZkErrorCode.NO_AUTH
        with reader_of(ours) as reader:
            assert reader.get("/ours") is not None
        guessing = session_of(settings("kafka", "guess"))
        with pytest.raises(AuthenticationFailed, match="refused the credentials"), guessing:
            guessing.get("/ours")


def test_a_server_that_lets_nobody_in_without_a_name(tmp_path: Path) -> None:
    """It ends the session at the first request; names of ZooKeeper's own passwords count too."""
    enforced = {"enforce.auth.enabled": "true", "enforce.auth.schemes": "digest"}
    with EmbeddedZooKeeper(tmp_path / "zookeeper", config=enforced) as server:
        with pytest.raises(AuthenticationFailed, match="refused the credentials"):
            ZkSession(server.connect_string, 10_000).connect()
        named = ZkSession(server.connect_string, 10_000, auth_data=[("digest", "kafka:hush")])
        with named as session:
            assert session.get("/") is not None
