"""Checks made before anything starts, so that what is missing is said at once and in words."""

from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path

from streaming.errors import ConfigurationError, NoZooKeeper, PortTaken
from streaming.log.client_config import security_options
from streaming.log.location import topic_of
from streaming.paths import DataDir
from streaming.server_address import host_and_port

_SOCKET_PATH_BYTES_MAX = 103 if sys.platform == "darwin" else 107
"""What the kernel takes as the path of a Unix socket (sun_path, less the byte that ends it)."""


def check_writable(data_dir: Path) -> None:
    """Raise ConfigurationError when the data folder cannot be made, or nothing in it."""
    there = data_dir
    while not os.path.lexists(there):
        there = there.parent
    if not there.is_dir():
        wrong = "is not a folder"
    elif not os.access(there, os.W_OK | os.X_OK):
        wrong = "cannot be written by this user"
    else:
        return
    raise ConfigurationError(
        f"data.dir is {str(data_dir)!r}, but {there} {wrong}; allowed is a folder that can be"
        " written, or a path where one can be made"
    )


def check_data_dir(data_dir: Path) -> None:
    """Raise ConfigurationError when the front's Unix sockets could not have their place there, it
    cannot be written, or it is a shadow's: our machines would go on from what another controller
    did, under its epochs.
    """
    folders = DataDir(data_dir)
    length = len(os.fsencode(data_dir))
    most = _SOCKET_PATH_BYTES_MAX - max(len(f"/{path.name}") for path in folders.sockets)
    if length > most:
        raise ConfigurationError(
            f"data.dir is {str(data_dir)!r}, which has {length} bytes; at most {most} are allowed,"
            " since there are Unix sockets in it"
        )
    check_writable(data_dir)
    if folders.shadow_mark.exists():
        raise ConfigurationError(
            f"data.dir is {str(data_dir)!r}, in which a shadow has run: what it logged is another"
            " controller's history; set data.dir to another folder, or delete this one"
        )


def claim_for_shadow(data_dir: Path) -> None:
    """Mark a data folder as a shadow's; raises ConfigurationError when it is a controller's.

    One that is marked stays a shadow's, though commands for its checkpoint leave `job.lock` in it.
    """
    check_writable(data_dir)
    folders = DataDir(data_dir)
    if folders.shadow_mark.exists():
        return
    for used in (folders.outcomes, folders.job_lock):
        if used.exists():
            raise ConfigurationError(
                f"data.dir is {str(data_dir)!r}, which is a controller's (it has {used.name}), and"
                " a shadow needs a folder of its own: give it with --data-dir"
            )
    data_dir.mkdir(parents=True, exist_ok=True)
    folders.shadow_mark.touch()


def check_log_clusters(*urls: str) -> None:
    """Raise ConfigurationError when the file that a topic's URL names, if any, cannot be used."""
    for url in filter(None, urls):
        if config := topic_of(url).config:
            security_options(Path(config))


def check_bindable(host: str, port: int, who: str = "gateway") -> None:
    """Raise `bind_failure` when `who` could not bind host:port; port 0 is any free one."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise bind_failure(error, host, port, who) from error


def bind_failure(error: OSError, host: str, port: int, who: str = "gateway") -> Exception:
    """Return a failure to bind host:port in the words of the settings <who>.host, <who>.port."""
    if error.errno == errno.EADDRINUSE:
        return PortTaken(f"{host}:{port}", f"{who}.port")
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        told = "; what brokers and clients are told is gateway.advertised.host"
        return ConfigurationError(
            f"{who}.host = {host!r} cannot be bound ({error.strerror}); allowed: an address of"
            f" this machine, or 0.0.0.0 for all of them{told if who == 'gateway' else ''}"
        )
    return error


def check_zookeeper(connect: str, timeout_ms: int) -> None:
    """Raise NoZooKeeper unless one server of the connect string accepts a connection.

    `timeout_ms` is shared by all servers. The session itself is the ZooKeeper client's matter.
    """
    servers = connect.partition("/")[0].split(",")
    reasons = []
    for server in servers:
        place = host_and_port(server)
        try:
            with socket.create_connection(place, timeout_ms / 1_000 / len(servers)):
                return
        except OSError as error:
            reasons.append(f"{server}: {error.strerror or error}")
    raise NoZooKeeper(connect, "; ".join(reasons))
