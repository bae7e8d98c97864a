"""What kazoo's client and threads are made to do otherwise."""

from __future__ import annotations

from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler

from streaming.zk.errors import WriteRefused

_READS = frozenset({-11, 3, 4, 6, 8, 9, 12, 22, 100, 101, 102})
"""Request types that change no znode (org.apache.zookeeper.ZooDefs.OpCode): closeSession, exists,
getData, getACL, getChildren, sync, getChildren2, multiRead, auth, setWatches, sasl.
"""


class ReadingClient(KazooClient):
    """kazoo's client without its writes: every request of it passes through `_call`."""

    def _call(self, request: Any, async_object: Any) -> Any:
        if request.type not in _READS:
            raise WriteRefused(f"a reading session was to send a {type(request).__name__}")
        return super()._call(request, async_object)


class ImpatientHandler(SequentialThreadingHandler):
    """kazoo's threads, with a bound on how long a machine that is off may hold up the next one.

    kazoo gives each address the whole session timeout to answer, and has noticed a silent server
    after two thirds of it: all addresses have their turn in the third that is left.
    """

    def __init__(self, hosts: str, session_timeout_ms: int) -> None:
        """Share the third that is left among the addresses of hosts."""
        super().__init__()
        count = hosts.partition("/")[0].count(",") + 1
        self._connect_timeout_s = session_timeout_ms / 1000 / 3 / count

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["timeout"] = self._connect_timeout_s
        return super().create_connection(*args, **kwargs)
