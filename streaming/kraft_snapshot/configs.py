"""Configurations, quotas and credentials as a KRaft quorum would know them
(ZkConfigMigrationClient).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from streaming.kraft_snapshot.taking import taken
from streaming.metadata_log.codes import CONFIGURED, QUOTA_ENTITIES
from streaming.metadata_log.records import Record, RecordType
from streaming.migration.configs import is_password
from streaming.migration.entities import config_data
from streaming.security.encoded_passwords import decoded
from streaming.security.scram import DIGESTS, MECHANISMS, parse_credential
from streaming.wire.schema_codec import Body
from streaming.zk.reader import ZkReader
from streaming.zk.znodes import CONFIG_PATH, parse_config
from streaming.zk.znodes.paths import DEFAULT_ENTITY, desanitized
from streaming.zk.znodes.quotas import quota_value

_TOPICS, _BROKERS = "topics", "brokers"
_KINDS = {folder: kind for kind, folder in CONFIGURED.items()}
_OF_QUOTAS = {folder: entity for entity, folder in QUOTA_ENTITIES.items()}
_MECHANISMS = {name: code for code, name in MECHANISMS.items()}


def config_records(
    session: ZkReader, topics: Collection[str], secrets: Sequence[str], gaps: list[str]
) -> Iterator[Record]:
    """Yield the records of all configurations but of topics that are not among `topics`.

    secrets: of brokers, with which those have encoded passwords. gaps gets what cannot be read.
    Raises the errors of streaming.zk.errors.
    """

    def records(path: str, said: bytes) -> Iterator[Record]:
        kind, name, *below = path.removeprefix(f"{CONFIG_PATH}/").split("/")
        if kind == _TOPICS and name not in topics:
            return
        config = parse_config(said)
        if kind in _OF_QUOTAS:
            yield from _limits([kind, name, *below], config)
        else:
            for key in sorted(filter(is_password, config)):
                try:
                    config[key] = decoded(config[key], secrets)
                except ValueError as error:
                    del config[key]
                    gaps.append(f"{path}: {key}: {error}")
            yield from _config(kind, name, config)

    return taken(config_data(session), records, gaps)


def _config(kind: str, name: str, config: Mapping[str, str]) -> Iterator[Record]:
    """Raises ValueError."""
    if kind == _BROKERS and name != DEFAULT_ENTITY and not name.isdecimal():
        raise ValueError(f"{name} is no broker")
    body = {"resource_type": _KINDS[kind], "resource_name": "" if name == DEFAULT_ENTITY else name}
    for key in sorted(config):
        yield Record(RecordType.CONFIG, {**body, "name": key, "value": config[key]})


def _limits(place: Sequence[str], config: Mapping[str, str]) -> Iterator[Record]:
    """Yield quotas, and a user's credentials; place: folders and names in turn. Raises ValueError
    naming what is wrong.
    """
    folders, names = place[::2], place[1::2]
    for key in sorted(config):
        try:
            if key in DIGESTS and len(names) == 1:
                yield _credential(names[0], key, config[key])
            else:
                entity = list(map(_entity, folders, names))
                body = {"entity": entity, "key": key, "value": quota_value(config[key])}
                yield Record(RecordType.CLIENT_QUOTA, {**body, "remove": False})
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from error


def _entity(folder: str, name: str) -> Body:
    is_default = name == DEFAULT_ENTITY
    return {
        "entity_type": _OF_QUOTAS[folder],
        "entity_name": None if is_default else desanitized(name),
    }


def _credential(name: str, mechanism: str, text: str) -> Record:
    found = parse_credential(text)
    body = {
        "name": desanitized(name),
        "mechanism": _MECHANISMS[mechanism],
        "salt": found.salt,
        "stored_key": found.stored_key,
        "server_key": found.server_key,
        "iterations": found.iterations,
    }
    return Record(RecordType.USER_SCRAM_CREDENTIAL, body)
