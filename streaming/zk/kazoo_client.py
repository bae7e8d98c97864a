"""What kazoo's client and threads are made to do otherwise."""

from __future__ import annotations

import random
import ssl
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionDropped,
    SessionClosedRequireSaslError,
    SessionExpiredError,
    UnimplementedError,
    ZookeeperError,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler

from streaming.embedded.jvm import JvmFailed
from streaming.keyfiles.renewed import RenewedContext
from streaming.tickets.jgss import GssFailed
from streaming.zk.errors import WriteRefused
from streaming.zk.host_addresses import Address, HostAddresses
from streaming.zk.ops import ReadDataRequest

_READS = frozenset({-11, 3, 4, 6, 8, 9, 12, 22, 100, 101, 102})
"""Request types that change no znode (org.apache.zookeeper.ZooDefs.OpCode): closeSession, exists,
getData, getACL, getChildren, sync, getChildren2, multiRead, auth, setWatches, sasl.
"""


_PROBE_XID = -9
"""None that kazoo or ZooKeeper gives to anything."""


class ImpatientHandler(SequentialThreadingHandler):
    """kazoo's threads, with a bound on how long a machine that is off may hold up the next one.

    kazoo gives each address the whole session timeout to answer, and has noticed a silent server
    after two thirds of it: all addresses have their turn in the third that is left.
    """

    def __init__(
        self, hosts: str, session_timeout_ms: int, tls: RenewedContext | None = None
    ) -> None:
        """Share the third that is left among the addresses of hosts; tls: what connections are
        secured with.
        """
        super().__init__()
        count = hosts.partition("/")[0].count(",") + 1
        self.session_timeout_s = session_timeout_ms / 1000
        self.connect_timeout_s = self.session_timeout_s / 3 / count
        self._tls = tls

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["timeout"] = self.connect_timeout_s
        plain = super().create_connection(*args, **kwargs)
        if self._tls is None:
            return plain
        try:
            plain.settimeout(self.connect_timeout_s)
            return self._tls.wrap_socket(plain, server_hostname=kwargs["hostname"])
        except BaseException:
            plain.close()
            raise

    def select(self, *args: Any, **kwargs: Any) -> Any:
        """Wait as kazoo does, but for nothing where an answer was read and decrypted already."""
        readers, others = args[0], args[1:]
        waiting = [one for one in readers if isinstance(one, ssl.SSLSocket) and one.pending()]
        if not waiting:
            return super().select(*args, **kwargs)
        found = super().select(readers, *others[:2], 0)
        return [*waiting, *(one for one in found[0] if one not in waiting)], *found[1:]


class _ImpatientConnection(ConnectionHandler):
    """kazoo's connection, with that bound also on a server that takes the connection but does not
    say whether the session goes on, as one that is starting or stuck may.

    There is none for a new session: nothing is lost by waiting, and servers agree on it first.

    A server that refuses a password hangs up, and so does one that dies. kazoo gives up for good
    then; where the password was good once, it is the latter. Where Kerberos gives us no ticket, it
    was not ZooKeeper that refused.

    Names are resolved within that bound too, once they were before.

    Whether the server knows multiRead is asked before anything else is on its way: one before 3.6
    refuses ahead of its answers to what came before, for which kazoo ends the session, and hangs
    up (UnimplementedRequestProcessor).
    """

    _was_known = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._addresses = HostAddresses()

    def _expand_client_hosts(self) -> list[Address]:
        handler = self.handler
        is_first = self._addresses.is_empty
        timeout_s = handler.session_timeout_s if is_first else handler.connect_timeout_s
        found = self._addresses.of(self.client.hosts, timeout_s)
        if self.client.randomize_hosts:
            random.shuffle(found)
        return found

    def _connect(self, host: str, hostip: str, port: int) -> tuple[float, float]:
        read_timeout_ms, connect_timeout_ms = super()._connect(host, hostip, port)
        if not self.client.lacks_multi_read:
            self._ask_for_multi_read(f"{host}:{port}", connect_timeout_ms / 1000)
        return read_timeout_ms, connect_timeout_ms

    def _ask_for_multi_read(self, server: str, timeout_s: float) -> None:
        try:
            self._invoke(timeout_s, ReadDataRequest((), ""), _PROBE_XID)
        except (AuthFailedError, SessionExpiredError):
            raise
        except UnimplementedError as error:
            self.client.lacks_multi_read = True
            raise ConnectionDropped(f"{server} does not know multiRead") from error
        except SessionClosedRequireSaslError as error:
            raise AuthFailedError(f"{server} wants to know who asks") from error
        except ZookeeperError as error:
            raise ConnectionDropped(f"{server} answered {error!r}") from error

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        return super()._invoke(self._bounded(timeout), request, xid)

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        try:
            super()._authenticate_with_sasl(host, self._bounded(timeout))
        except AuthFailedError as error:
            if isinstance(error.__cause__, GssFailed | JvmFailed):
                self.logger.warning("Kerberos has no ticket for ZooKeeper: %s", error.__cause__)
            elif not self._was_known:
                raise
            raise ConnectionDropped(str(error)) from error
        self._was_known = True

    def _bounded(self, timeout: float) -> float:
        if not self.client._session_id:
            return timeout
        return min(timeout, float(self.handler.connect_timeout_s))


class ImpatientClient(KazooClient):
    """kazoo's client with such a connection; its handler must be an ImpatientHandler.

    lacks_multi_read: whether one of the servers it was connected with does not know multiRead.
    """

    lacks_multi_read = False

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        made: ConnectionHandler = self._connection
        self._connection: ConnectionHandler = _ImpatientConnection(
            self, made.retry_sleeper, logger=made.logger, sasl_options=made.sasl_options
        )


class ReadingClient(ImpatientClient):
    """The client without its writes: every request of it passes through `_call`."""

    def _call(self, request: Any, async_object: Any) -> Any:
        if request.type not in _READS:
            raise WriteRefused(f"a reading session was to send a {type(request).__name__}")
        return super()._call(request, async_object)
