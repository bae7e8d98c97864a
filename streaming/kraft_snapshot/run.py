"""`helmstream kraft-snapshot`: everything put together, from connecting to the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streaming.errors import ConfigurationError
from streaming.keyfiles.properties import read_properties
from streaming.kraft_snapshot.configs import config_records
from streaming.kraft_snapshot.entities import acl_records, producer_id_records, token_records
from streaming.kraft_snapshot.topics import read_all_topics, topic_records
from streaming.metadata_log.records import Record, RecordType
from streaming.metadata_log.writing import write_snapshot
from streaming.preflight import check_zookeeper
from streaming.security.encoded_passwords import SECRETS
from streaming.settings import Settings
from streaming.zk.errors import RequestFailed
from streaming.zk.opening import reader_of
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import BROKER_IDS_PATH


@dataclass(slots=True)
class Written:
    """What was written, and where; gaps: what was left out. others: records that are of no topic
    or partition. running_brokers: those that ran when all was read.
    """

    path: Path
    topics: int
    partitions: int
    others: int
    running_brokers: list[int] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)


def write_kraft_snapshot(
    settings: Settings, folder: Path, time_ms: int, secrets: Sequence[str] = ()
) -> Written:
    """Write what ZooKeeper has into a folder, as the snapshot of a metadata log.

    time_ms: of now, since the epoch. secrets: with which brokers have encoded passwords. Raises
    CannotWriteSnapshot, TopicsUnreadable, NoZooKeeper, ConfigurationError when a file that the
    settings name cannot be used, and the errors of streaming.zk.errors.
    """
    check_zookeeper(settings.zookeeper_connect, settings.zookeeper_connection_timeout_ms)
    counts, gaps = Counter[RecordType](), list[str]()

    def counted(records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            counts[record.kind] += 1
            yield record

    with reader_of(settings) as session:
        records = counted(cluster_records(session, secrets, gaps))
        path = write_snapshot(folder, records, time_ms)
        names = session.children(BROKER_IDS_PATH) or ()
    topics, partitions = counts.pop(RecordType.TOPIC, 0), counts.pop(RecordType.PARTITION, 0)
    brokers = sorted(int(name) for name in names if name.isdecimal())
    return Written(path, topics, partitions, counts.total(), brokers, gaps)


def secrets_of(files: Sequence[Path]) -> list[str]:
    """Return the secrets in brokers' files of properties; raises ConfigurationError naming one."""
    secrets = []
    for file in files:
        config = read_properties(file)
        found = [config[key] for key in SECRETS if config.get(key)]
        if not found:
            raise ConfigurationError(f"{file}: {SECRETS[0]} is not set")
        secrets += found
    return secrets


def cluster_records(session: ZkReader, secrets: Sequence[str], gaps: list[str]) -> Iterator[Record]:
    """Yield all that a migration would write; gaps gets what cannot be read or taken over.

    Raises TopicsUnreadable, and the errors of streaming.zk.errors but RequestFailed.
    """
    topics = read_all_topics(session)
    yield from topic_records(session, topics)
    parts: tuple[Callable[[], Iterator[Record]], ...] = (
        lambda: config_records(session, topics, secrets, gaps),
        lambda: producer_id_records(session, gaps),
        lambda: acl_records(session, gaps),
        lambda: token_records(session, gaps),
    )
    for part in parts:
        try:
            yield from part()
        except RequestFailed as error:
            gaps.append(str(error))
