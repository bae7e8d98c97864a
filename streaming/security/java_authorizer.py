"""An authorizer of the brokers' own, a class of Java's, in a JVM: asked as by brokers (KIP-504)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

from streaming.embedded.jvm import JavaException, JvmFailed, SmallJvm, asked
from streaming.security.acls import Client
from streaming.security.authorizer import AuthorizerFailed, Inquiry, Right
from streaming.security.started_authorizer import (
    AUTHORIZER,
    Alike,
    ServerInfo,
    StartedAuthorizer,
)

logger = logging.getLogger(__name__)

_THREADS = 4


@dataclass(frozen=True, slots=True)
class JavaClass:
    """Which class an authorizer is.

    path: of the class, its libraries, and Kafka's; config: what it is configured with, as brokers
    give it all properties of theirs; options: of its JVM.
    """

    name: str
    path: str
    config: Mapping[str, str]
    options: Sequence[str] = ()


class JavaAuthorizer:
    """Asks a class about all clients but super users; nothing that it says is remembered."""

    def __init__(self, class_: JavaClass, super_users: Collection[str]) -> None:
        """super_users: principals that it is not asked about."""
        self._class = class_
        self._super_users = frozenset(super_users)
        self._jvm = SmallJvm(["-Xmx512m", *class_.options], class_.path)
        self._threads = ThreadPoolExecutor(_THREADS, "authorizer")
        self._server: ServerInfo | None = None
        self._making = threading.Lock()
        self._asking: StartedAuthorizer | None = None

    @property
    def ready(self) -> bool:
        """Whether it was started."""
        return self._server is not None

    def start(self, server: ServerInfo) -> None:
        """Be ready from now on; the class is made by another thread, while nobody waits yet."""
        self._server = server
        self._threads.submit(self._make)

    def check(self) -> None:
        """Make and configure the class, without starting it; raises AuthorizerFailed."""
        with _failing():
            find = self._jvm.packages().java.lang.Class.forName
            if not find(AUTHORIZER).isAssignableFrom(find(self._class.name)):
                raise AuthorizerFailed(f"it is no {AUTHORIZER}")
            self._configured().close()

    def close(self) -> None:
        """End the JVM, which otherwise ends with this process."""
        self._threads.shutdown()
        self._jvm.close()

    def is_super_user(self, client: Client) -> bool:
        """Return whether a client may do everything."""
        return client.principal in self._super_users

    def permits(self, client: Client, right: Right) -> bool | None:
        """Return that nobody knows without having asked."""
        return None

    async def ask(self, inquiry: Inquiry, rights: Mapping[Right, bool]) -> Mapping[Right, bool]:
        """Return which of the rights a request's client has; raises AuthorizerFailed."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._ask, inquiry, dict(rights))

    def _ask(self, inquiry: Inquiry, rights: Mapping[Right, bool]) -> dict[Right, bool]:
        alike: defaultdict[Alike, list[str]] = defaultdict(list)
        for (operation, resource_type, name), told in rights.items():
            if name is not None:
                alike[operation, resource_type, told].append(name)
        some = [right for right in rights if right[-1] is None]
        with _failing():
            asking = self._made()
            known = {right: asking.permits_some(inquiry, *right[:2]) for right in some}
            for (operation, resource_type, told), names in alike.items():
                permitted = asking.permits(inquiry, (operation, resource_type, told), names)
                known |= {
                    (operation, resource_type, name): one
                    for name, one in zip(names, permitted, strict=True)
                }
        return known

    def _made(self) -> StartedAuthorizer:
        """Return the started class, made anew when the JVM is another one."""
        with self._making:
            asking = self._asking
            if asking is None or asking.packages is not self._jvm.packages():
                assert self._server is not None
                asking = StartedAuthorizer(self._jvm, self._configured(), self._server)
                self._asking = asking
            return asking

    def _make(self) -> None:
        try:
            with _failing():
                self._made()
        except AuthorizerFailed as error:
            logger.error("%s; it is tried again with the next request", error)

    def _configured(self) -> Any:
        made = reduce(getattr, self._class.name.split("."), self._jvm.packages())()
        made.configure(dict(self._class.config))
        return made


@contextmanager
def _failing() -> Iterator[None]:
    """Raises AuthorizerFailed for what goes wrong in Java."""
    try:
        with asked():
            yield
    except (JavaException, JvmFailed) as error:
        raise AuthorizerFailed(f"the authorizer: {error}") from error
