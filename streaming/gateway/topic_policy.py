"""Asks the brokers' own policy, a class of Java's, whether a topic may be created (KIP-108)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeAlias

from state.protocol_errors import ProtocolError
from streaming.embedded.java_class import JavaClass, MadeOf
from streaming.embedded.jvm import JavaException, JvmFailed, SmallJvm, asked

logger = logging.getLogger(__name__)

POLICY = "org.apache.kafka.server.policy.CreateTopicPolicy"
_CONFIG_EXCEPTION = "org.apache.kafka.common.config.ConfigException"

Refusal: TypeAlias = tuple[int, str | None]
"""A protocol error, and a sentence for the client."""


class TopicPolicy(Protocol):
    """Says which topics may not be created."""

    async def refusal(self, payload: Mapping[str, Any]) -> Refusal | None:
        """Return why not, None if it may be; payload: of the event that asks for it."""
        ...


class JavaTopicPolicy:
    """A CreateTopicPolicy, asked by one thread as brokers ask it (ZkAdminManager.createTopics)."""

    def __init__(self, class_: JavaClass) -> None:
        """Nothing is made yet."""
        self._class = class_
        self._jvm = SmallJvm(["-Xmx128m", *class_.options], class_.path)
        self._thread = ThreadPoolExecutor(1, "topic-policy")
        self._policy = MadeOf(self._jvm, class_.name, [POLICY], self._configured)

    def check(self) -> None:
        """Make the policy now; raises ClassUnusable."""
        self._policy.check()

    async def refusal(self, payload: Mapping[str, Any]) -> Refusal | None:
        """Return why a topic may not be created, None if it may be.

        A policy that fails, and one that cannot be asked, refuse.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._refusal, payload)

    def close(self) -> None:
        """End the JVM, which otherwise ends with this process."""
        self._thread.shutdown()
        self._jvm.close()

    def _refusal(self, payload: Mapping[str, Any]) -> Refusal | None:
        try:
            with asked():
                self._policy.get().validate(self._metadata(payload))
        except JavaException as error:
            return self._translated(error)
        except JvmFailed as error:
            return ProtocolError.UNKNOWN_SERVER_ERROR, f"the policy for topics: {error}"
        return None

    def _configured(self, policy: Any) -> Any:
        policy.configure(dict(self._class.config))
        return policy

    def _metadata(self, payload: Mapping[str, Any]) -> Any:
        """Return what is asked for as a policy sees it: counts, or else replicas."""
        given = payload["assignment"]
        made = getattr(
            self._jvm.packages().org.apache.kafka.server.policy, "CreateTopicPolicy$RequestMetadata"
        )
        return made(
            payload["topic"],
            None if given else payload["partitions"],
            None if given else payload["replication_factor"],
            {int(number): brokers for number, brokers in given.items()} if given else None,
            payload["configs"],
        )

    def _translated(self, error: JavaException) -> Refusal:
        """Return what a broker makes of an exception of the policy's (ApiError.fromThrowable)."""
        try:
            with asked():
                if error.raised.getClass().getName() == _CONFIG_EXCEPTION:
                    return ProtocolError.INVALID_CONFIG, error.raised.getMessage()
                requests = self._jvm.packages().org.apache.kafka.common.requests
                made = requests.ApiError.fromThrowable(error.raised)
                code, message = int(made.error().code()), made.message()
        except (JavaException, JvmFailed) as another:
            code, message = int(ProtocolError.UNKNOWN_SERVER_ERROR), f"{error}, and then {another}"
        if code == ProtocolError.UNKNOWN_SERVER_ERROR:  # of which clients hear no more
            logger.error("The policy for topics failed: %s", error)
        return code, message
