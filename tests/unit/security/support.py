"""A gateway with a listener in TLS, and the keys of who connects to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from streaming.gateway.connection import Limits
from streaming.gateway.server import Listener
from streaming.security.tls import server_context
from streaming.settings import Settings
from streaming.settings_loader import load_settings
from tests.fixtures.certificates import Authority
from tests.unit.gateway.support import Rig, with_gateway

SECURE = "SECURE"
ALL_TOPICS = {"topics": None}


@dataclass
class Files:
    """Keys of this node and of somebody else, and who trusts whom."""

    folder: Path
    authority: Authority = field(init=False)
    stranger: Authority = field(init=False)

    def __post_init__(self) -> None:
        self.authority = Authority(self.folder / "ours")
        self.stranger = Authority(self.folder / "strange")

    def settings(self, *overrides: str, signed_by: Authority | None = None) -> Settings:
        """A node's settings; all trust our authority alone, whoever signed their key."""
        key, trusted = (signed_by or self.authority).keystore("node"), self.authority.trusted
        given = [f"ssl.keystore.location={key}", f"ssl.truststore.location={trusted}", *overrides]
        return load_settings(overrides=given, environment={})


def secured(
    scenario: Callable[[Rig], Awaitable[None]], given: Settings, limits: Limits | None = None
) -> None:
    """Run a scenario against a gateway with a listener in TLS."""
    listener = Listener(SECURE, "127.0.0.1", 0, tls=server_context(given))
    with_gateway(scenario, limits, [listener])
