"""Sessions with a real ZooKeeper that wants to see tickets of Kerberos."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from streaming.embedded.zookeeper import EmbeddedZooKeeper
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from streaming.zk.claim import ControllerClaim, claim_controller
from streaming.zk.errors import RequestFailed, ZkErrorCode, ZooKeeperError
from streaming.zk.opening import session_of
from tests.fixtures.jaas import jaas_file
from tests.fixtures.key_distribution import SERVICE, Kdc
from tests.fixtures.secured_zookeeper import zookeeper_with_tickets

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@dataclass(frozen=True)
class Ticketed:
    """A ZooKeeper, and the centre that it trusts."""

    server: EmbeddedZooKeeper
    kdc: Kdc
    folder: Path

    def settings(self, name: str, krb5_conf: Path | None = None, *overrides: str) -> Settings:
        """How a node with that name reaches it."""
        module = {"Krb5LoginModule": self.kdc.options(name)}
        jaas = jaas_file(self.folder / f"{name.replace('/', '-')}.jaas", {"Client": module})
        given = [
            f"zookeeper.connect={self.server.connect_string}",
            "zookeeper.session.timeout.ms=10000",
            "zookeeper.set.acl=true",
            f"java.security.auth.login.config={jaas}",
            f"java.security.krb5.conf={krb5_conf or self.kdc.krb5_conf}",
            *overrides,
        ]
        return load_settings(overrides=given, environment={})


@pytest.fixture(scope="module")
def ticketed(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ticketed]:
    folder = tmp_path_factory.mktemp("ticketed")
    with zookeeper_with_tickets(folder / "zookeeper", kdc) as server:
        yield Ticketed(server, kdc, folder)


def test_a_claim_is_made_and_znodes_are_for_who_has_the_ticket(ticketed: Ticketed) -> None:
    with session_of(ticketed.settings(f"{SERVICE}/localhost")) as session:
        assert isinstance(claim_controller(session, 1000, steal=True), ControllerClaim)
        session.ensure_path("/ours")
        session.set("/ours", b"kept")
    with session_of(ticketed.settings("alice")) as another:
        with pytest.raises(RequestFailed) as refused:
            another.set("/ours", b"taken")
        assert refused.value.code == ZkErrorCode.NO_AUTH
    with session_of(ticketed.settings(f"{SERVICE}/other")) as same_service:
        same_service.set("/ours", b"also ours")


def test_a_server_may_have_another_name(kdc: Kdc, tmp_path: Path) -> None:
    with zookeeper_with_tickets(tmp_path / "zookeeper", kdc, SERVICE) as server:
        called = f"zookeeper.sasl.client.username={SERVICE}"
        named = Ticketed(server, kdc, tmp_path).settings("alice", None, called)
        with session_of(named) as session:
            session.ensure_path("/hers")


def test_without_a_ticket_nothing_is_read_and_it_is_said_why(
    ticketed: Ticketed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away = tmp_path / "krb5.conf"
    away.write_text(ticketed.kdc.conf_of_nobody())
    with pytest.raises(ZooKeeperError), session_of(ticketed.settings("alice", away)):
        pass
    assert "Kerberos has no ticket for ZooKeeper: No valid credentials" in caplog.text
    assert "Connection refused" in caplog.text
