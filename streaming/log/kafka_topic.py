"""A Kafka topic that holds a log: what a record looks like in it, what it must be.

docs/event-log.md, "In a Kafka topic", is the specification.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka import TopicPartition
from kafka.admin import ConfigResource, KafkaAdminClient
from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
    TopicAlreadyExistsError,
)

from streaming.errors import ConfigurationError
from streaming.log.api import LogError, LogRecord, LogUnavailable
from streaming.log.client_config import security_options
from streaming.log.kafka_messages import make_message_classes
from streaming.log.location import KafkaTopic
from streaming.process.polling import polls

logger = logging.getLogger(__name__)

FORMAT_VERSION = b"1"
MESSAGE_BYTES_MAX = 96 * 1024 * 1024
"""max.message.bytes of a topic made here: a broker's largest request (100 MiB) has room for it."""
MESSAGE_BYTES_MIN = 16 * 1024 * 1024
"""max.message.bytes below which an event about a large cluster might not fit."""

_MIN_INSYNC, _IN_SYNC = "min.insync.replicas", 2
_ALTERED = "OK"  # what kafka-python says of a configuration that was not refused
_ADMIN_TIMEOUT_MS = 10_000
_LOOK_AGAIN_S = 0.1
_FINAL = SaslAuthenticationFailedError


class UnusableTopic(LogError, ConfigurationError):
    """A topic is missing, or cannot hold a log as it is."""


def partition_of(topic: KafkaTopic) -> TopicPartition:
    """Return the topic's only partition."""
    return TopicPartition(topic.name, 0)


class _Refusals(logging.Handler):
    """Hears in kafka-python's log why a connection failed, which its errors do not say.

    Clients have a thread each: those that were there before are heard of, too, and do not count.
    reason: that of the last one, but rather that a name was refused.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.reason: object = None
        self._others = [
            one for one in threading.enumerate() if one is not threading.current_thread()
        ]

    def emit(self, record: logging.LogRecord) -> None:
        if any(one.ident == record.thread and one.is_alive() for one in self._others):
            return
        for one in record.args or ():
            if isinstance(one, _FINAL) or (
                isinstance(one, KafkaConnectionError) and not isinstance(self.reason, _FINAL)
            ):
                self.reason = one


@contextmanager
def _with_reasons() -> Iterator[None]:
    """Add to an error of a client that cannot connect why its connections failed."""
    refusals, log = _Refusals(), logging.getLogger("kafka.net.manager")
    log.addHandler(refusals)
    try:
        yield
    except KafkaTimeoutError as error:
        raise KafkaTimeoutError(f"{error.args[0]} ({refusals.reason})") from error
    finally:
        log.removeHandler(refusals)


def open_client(made: Any, **options: Any) -> Any:
    """Return a client of one of kafka-python's classes; raises KafkaError.

    They start a thread before they connect, and leave it there when that fails. Their option that
    a topic must not be made by asking for it does not come as far as their requests.
    """
    connections: list[Any] = []

    def connect(**config: Any) -> Any:
        connection = made.DEFAULT_CONFIG["kafka_client"](**config)
        connections.append(connection)
        connection.cluster.config["allow_auto_create_topics"] = False
        return connection

    try:
        with _with_reasons():
            return made(**options, kafka_client=connect)
    except BaseException:
        for connection in connections:
            connection.close()
        raise


def client_options(topic: KafkaTopic, timeout_ms: int) -> dict[str, Any]:
    """Return what every client of the log cluster is made with; raises ConfigurationError."""
    make_message_classes()
    security = security_options(Path(topic.config)) if topic.config else {}
    return {
        **security,
        "bootstrap_servers": topic.bootstrap_servers.split(","),
        "client_id": "helmstream",
        "bootstrap_timeout_ms": timeout_ms,
    }


def to_headers(kind: str) -> list[tuple[str, bytes]]:
    """Return the headers of a record."""
    return [("kind", kind.encode()), ("format", FORMAT_VERSION)]


def to_record(topic: KafkaTopic, message: Any) -> LogRecord:
    """Return the record in a message as kafka-python's consumer gives it.

    Raises LogError when it is none, or of another format version.
    """
    headers = dict(message.headers)
    if headers.get("format") != FORMAT_VERSION or "kind" not in headers or message.value is None:
        raise LogError(
            f"{topic} offset {message.offset}: not a record of format version"
            f" {FORMAT_VERSION.decode()}, its headers are {message.headers}"
        )
    try:
        kind, key = headers["kind"].decode(), (message.key or b"").decode()
    except UnicodeDecodeError as error:
        raise LogError(f"{topic} offset {message.offset}: not UTF-8: {error}") from None
    return LogRecord(message.offset, message.timestamp, kind, key, message.value)


@contextmanager
def told_as_unavailable(topic: KafkaTopic) -> Iterator[None]:
    """Raise LogUnavailable for an error of the client that is not about the topic itself."""
    try:
        yield
    except KafkaError as error:
        reason = str(error) or type(error).__name__
        raise LogUnavailable(
            f"the log cluster of {topic} does not answer as it should: {reason}"
        ) from error


def check_partitions(topic: KafkaTopic, partitions: set[int] | None) -> None:
    """Raise UnusableTopic unless the topic is there and has one partition."""
    if not partitions:
        raise UnusableTopic(
            f"{topic}: there is no such topic; make it with: helmstream log create {topic}"
        )
    if len(partitions) != 1:
        raise UnusableTopic(
            f"{topic} has {len(partitions)} partitions, allowed is 1: a log is one total order"
        )


def record_bytes_max(topic: KafkaTopic, admin: KafkaAdminClient) -> int:
    """Return max.message.bytes of the topic; warn where one broker may be all that has a record.

    Raises UnusableTopic when its configuration would change, lose or refuse records, LogUnavailable
    when it cannot be read.
    """
    names = ["cleanup.policy", "message.timestamp.type", "max.message.bytes", _MIN_INSYNC]
    resource = ConfigResource("topic", topic.name, names)
    found = admin.describe_configs([resource], config_filter="all")["topic"][topic.name]
    if not found:  # kafka-python does not tell the error
        raise LogUnavailable(
            f"the configuration of {topic} cannot be read: the broker that was asked does not know"
            " the topic yet, or does not allow us to describe it (DESCRIBE_CONFIGS)"
        )
    for key, allowed in (("cleanup.policy", "delete"), ("message.timestamp.type", "CreateTime")):
        if found[key]["value"] != allowed:
            raise UnusableTopic(
                f"{topic} has {key} = {found[key]['value']}, allowed is {allowed} for a log"
            )
    message_bytes_max = int(found["max.message.bytes"]["value"])
    if message_bytes_max < MESSAGE_BYTES_MIN:
        raise UnusableTopic(
            f"{topic} has max.message.bytes = {message_bytes_max}, allowed for a log are"
            f" {MESSAGE_BYTES_MIN} or more: a record that does not fit would stop the job for good"
        )
    if int(found[_MIN_INSYNC]["value"]) < _IN_SYNC:
        logger.warning(
            "%s has %s = %s: what is acknowledged may be on one broker alone, and be lost with it;"
            " with three replicas set it to %d",
            topic,
            _MIN_INSYNC,
            found[_MIN_INSYNC]["value"],
            _IN_SYNC,
        )
    return message_bytes_max


def open_admin(topic: KafkaTopic, timeout_ms: int = _ADMIN_TIMEOUT_MS) -> KafkaAdminClient:
    """Return an admin client of the log cluster; raises LogUnavailable."""
    with told_as_unavailable(topic):
        options = client_options(topic, timeout_ms)
        return open_client(KafkaAdminClient, **options, request_timeout_ms=timeout_ms)


def create_topic(topic: KafkaTopic, replication_factor: int) -> None:
    """Make a topic for a log: one partition, records stay until they are deleted by offset; with
    three replicas or more two have each record before it is acknowledged.

    replication_factor: -1 for the cluster's default. Raises UnusableTopic when it is there already,
    or now is without what the cluster refused; LogUnavailable.
    """
    configs = {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "message.timestamp.type": "CreateTime",
        "max.message.bytes": str(MESSAGE_BYTES_MAX),
    }
    wanted = {"num_partitions": 1, "replication_factor": replication_factor, "configs": configs}
    admin = open_admin(topic)
    try:
        with told_as_unavailable(topic):
            admin.create_topics({topic.name: wanted}, wait_for_metadata=True)
            if _replica_count(topic, admin) > _IN_SYNC:  # one may be away
                _need_in_sync(topic, admin, configs)
    except LogUnavailable as error:
        if isinstance(error.__cause__, TopicAlreadyExistsError):
            raise UnusableTopic(f"{topic} is there already") from None
        raise
    finally:
        admin.close()


def _replica_count(topic: KafkaTopic, admin: KafkaAdminClient) -> int:
    """Return how many replicas a new topic has, once the broker that is asked knows it: another one
    may have made it. Raises LogUnavailable.
    """
    for _ in polls(_ADMIN_TIMEOUT_MS / 1000, _LOOK_AGAIN_S):
        if partitions := admin.describe_topics([topic.name])[0]["partitions"]:
            return len(partitions[0]["replica_nodes"])
    raise LogUnavailable(
        f"{topic} was made, but no broker knew it {_ADMIN_TIMEOUT_MS // 1000} s later: whether two"
        f" brokers have each record is not known, set {_MIN_INSYNC}"
    )


def _need_in_sync(topic: KafkaTopic, admin: KafkaAdminClient, configs: dict[str, str]) -> None:
    """Have two brokers need each record; raises UnusableTopic when the log cluster refuses it."""
    # With what the topic was made with: brokers before 2.3 take back what is not named.
    wanted = ConfigResource("topic", topic.name, {**configs, _MIN_INSYNC: str(_IN_SYNC)})
    altered = admin.alter_configs([wanted], raise_on_unknown=False)["topic"][topic.name]
    if altered != _ALTERED:
        raise UnusableTopic(
            f"{topic} is there now, but its log cluster refused {_MIN_INSYNC} = {_IN_SYNC}"
            f" ({altered}): set it before the topic is used, or one broker alone may have a record"
        )
