"""What brokers' configurations say about a migration to KRaft (KafkaConfig.validateValues)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streaming.migration.findings import Finding, Weight, such_as
from streaming.setting_types import KAFKAS_AUTHORIZERS

MIGRATION_ENABLED = "zookeeper.metadata.migration.enable"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_PROTOCOL = "inter.broker.protocol.version"
_MIGRATES_SINCE = (3, 4, 0)
_DISKS_SINCE = (3, 7, 2)
_OURS = "gateway.advertised.host"
"""A setting that no broker has."""

Configs = Mapping[str, str | None]
"""What a broker says of its configuration; None for what it keeps to itself."""

_Said = tuple[Weight, str, str]
"""A finding of one broker: its weight, what is so, and what to do."""


def real_brokers(brokers: Mapping[int, Configs]) -> dict[int, Configs]:
    """Return those that are not helmstream."""
    return {id_: configs for id_, configs in brokers.items() if _OURS not in configs}


def broker_findings(brokers: Mapping[int, Configs]) -> Iterator[Finding]:
    """Yield what is found of each of some brokers, and of all together."""
    real = real_brokers(brokers)
    for id_ in sorted(brokers.keys() - real.keys()):
        yield Finding(
            Weight.TO_DO,
            f"broker {id_}",
            "it is helmstream, for which a migration waits as for a broker",
            "stop it once all brokers are configured for the migration",
        )
    for id_, configs in sorted(real.items()):
        for weight, what, remedy in _of_one(id_, configs):
            yield Finding(weight, f"broker {id_}", what, remedy)
    spoken = {str(configs.get(_PROTOCOL)) for configs in real.values()}
    if len(spoken) > 1:
        yield Finding(
            Weight.STOPS,
            "brokers",
            f"they have several {_PROTOCOL} ({such_as(spoken)}), which may not change while the"
            " cluster migrates",
            "have the newest one that all of them know",
        )


def _of_one(id_: int, configs: Configs) -> Iterator[_Said]:
    if MIGRATION_ENABLED not in configs:
        what = "it is older than Kafka 3.4, which cannot be migrated"
        yield Weight.STOPS, what, "upgrade it"
        return
    protocol = _version(configs.get(_PROTOCOL) or "")
    if protocol < _MIGRATES_SINCE:
        what = f"{_PROTOCOL} = {configs.get(_PROTOCOL)}, and 3.4 is the oldest that migrates"
        yield Weight.STOPS, what, "set it to what all brokers know, and restart it"
    yield from _disks(configs, protocol)
    reserved = int(configs.get("reserved.broker.max.id") or 0)
    if configs.get("broker.id.generation.enable") == "true" and 0 < reserved < id_:
        what = "its id was generated, with which it does not start for a migration"
        yield Weight.STOPS, what, "set broker.id to the id in its meta.properties"
    yield from _to_do(configs)


def _disks(configs: Configs, protocol: tuple[int, int, int]) -> Iterator[_Said]:
    disks = (configs.get("log.dirs") or configs.get("log.dir") or "").split(",")
    if len(disks) < 2:
        return
    if protocol < _DISKS_SINCE:
        what = f"it has {len(disks)} disks, and {_PROTOCOL} = {configs.get(_PROTOCOL)}"
        yield Weight.STOPS, what, "have 3.7 or newer (3.7-IV2)"
    else:
        what = "it has several disks: one that fails stops it while the cluster migrates"
        yield Weight.CHANGES, what, "see that all of them work before (KAFKA-16431)"


def _to_do(configs: Configs) -> Iterator[_Said]:
    if configs.get(MIGRATION_ENABLED) != "true":
        what = f"{MIGRATION_ENABLED} is not set"
        remedy = "set it, controller.quorum.voters and controller.listener.names, and restart it"
        yield Weight.TO_DO, what, remedy
    if listener := configs.get("control.plane.listener.name"):
        what = f"control.plane.listener.name = {listener}, which there is not in KRaft mode"
        yield Weight.TO_DO, what, "leave it out when it restarts in KRaft mode"
    authorizer = configs.get("authorizer.class.name")
    if authorizer in KAFKAS_AUTHORIZERS:
        what = f"{authorizer} does not work in KRaft mode"
        yield Weight.TO_DO, what, f"set {STANDARD_AUTHORIZER} then; it has the same lists"
    elif authorizer:
        what = f"{authorizer} has to work without ZooKeeper in KRaft mode"
        yield Weight.TO_DO, what, "ask who made it"


def _version(text: str) -> tuple[int, int, int]:
    """Return an inter-broker protocol as numbers; 3.7 is the last there is of it."""
    release, _, step = text.partition("-IV")
    try:
        major, minor = map(int, release.split(".")[:2])
        return major, minor, int(step) if step else 99
    except ValueError:
        return 0, 0, 0
