"""An authorizer of the brokers' own, a class of Java's, in a JVM: asked as by brokers (KIP-504)."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from streaming.embedded.java_class import JavaClass, MadeOf, shared_jvm
from streaming.embedded.jvm import JavaException, JvmFailed, asked
from streaming.security.acls import Client
from streaming.security.authorizer import AuthorizerFailed, Inquiry, Right
from streaming.security.older_authorizer import OLDER_AUTHORIZER, OlderAuthorizer
from streaming.security.started_authorizer import (
    AUTHORIZER,
    Alike,
    ServerInfo,
    StartedAuthorizer,
)

logger = logging.getLogger(__name__)

_THREADS = 4


class JavaAuthorizer:
    """Asks a class about all clients but super users; nothing that it says is remembered."""

    def __init__(self, class_: JavaClass, super_users: Collection[str]) -> None:
        """super_users: principals that it is not asked about."""
        self._class = class_
        self._super_users = frozenset(super_users)
        self._jvm = shared_jvm(class_.path, class_.options)
        self._threads = ThreadPoolExecutor(_THREADS, "authorizer")
        self._server: ServerInfo | None = None
        kinds = (AUTHORIZER, OLDER_AUTHORIZER)
        self._asking = MadeOf(self._jvm, class_.name, kinds, self._started)

    @property
    def ready(self) -> bool:
        """Whether it was started."""
        return self._server is not None

    def start(self, server: ServerInfo) -> None:
        """Be ready from now on; the class is made by another thread, while nobody waits yet."""
        self._server = server
        self._threads.submit(self._make)

    def check(self) -> None:
        """Make and configure the class, without starting it; raises ClassUnusable."""
        self._asking.check(lambda: self._configured(self._asking.new()).close())

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
            asking = self._asking.get()
            known = {right: asking.permits_some(inquiry, *right[:2]) for right in some}
            for (operation, resource_type, told), names in alike.items():
                permitted = asking.permits(inquiry, (operation, resource_type, told), names)
                known |= {
                    (operation, resource_type, name): one
                    for name, one in zip(names, permitted, strict=True)
                }
        return known

    def _make(self) -> None:
        try:
            with _failing():
                self._asking.get()
        except AuthorizerFailed as error:
            logger.error("%s; it is tried again with the next request", error)

    def _started(self, authorizer: Any) -> StartedAuthorizer | OlderAuthorizer:
        assert self._server is not None
        if self._asking.is_of(AUTHORIZER):
            return StartedAuthorizer(self._jvm, self._configured(authorizer), self._server)
        return OlderAuthorizer(self._jvm, self._configured(authorizer))

    def _configured(self, authorizer: Any) -> Any:
        authorizer.configure(dict(self._class.config))
        return authorizer


@contextmanager
def _failing() -> Iterator[None]:
    """Raises AuthorizerFailed for what goes wrong in Java."""
    try:
        with asked():
            yield
    except (JavaException, JvmFailed) as error:
        raise AuthorizerFailed(f"the authorizer: {error}") from error
