"""Errors a user can meet and mend: each says in one sentence what was wrong and what to do."""

from __future__ import annotations


class HelmstreamError(Exception):
    """Base of every expected error; the command line prints it without a traceback.

    `exit_code` is what the process ends with: 1 in general, 2 configuration, 3 something missing on
    this machine, 4 the network.
    """

    exit_code = 1


class ConfigurationError(HelmstreamError):
    """A setting is unknown, malformed or not allowed."""

    exit_code = 2


class PortTaken(HelmstreamError):
    """A port to listen on is in use."""

    exit_code = 4

    def __init__(self, address: str, setting: str) -> None:
        super().__init__(
            f"{address} is in use by another process; stop it, or set {setting} to a free port"
        )
        self.address = address
        self.setting = setting


class NoZooKeeper(HelmstreamError):
    """No server of the ZooKeeper connect string could be reached in time."""

    exit_code = 4

    def __init__(self, connect: str, reason: str) -> None:
        super().__init__(
            f"ZooKeeper cannot be reached at {connect}: {reason};"
            " check zookeeper.connect and that the server runs"
        )
        self.connect = connect
        self.reason = reason


class NotRunning(HelmstreamError):
    """A command that asks a running helmstream found none."""
