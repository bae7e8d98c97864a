"""What KRaft controllers' configuration says about a migration to them (KafkaConfig.validateValues,
ClusterControlManager.registerBroker, ControllerServer).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from streaming.keyfiles.properties import read_properties
from streaming.migration.brokers import (
    MIGRATION_ENABLED,
    STANDARD_AUTHORIZER,
    Configs,
)
from streaming.migration.findings import Finding, Weight, such_as
from streaming.setting_types import KAFKAS_AUTHORIZERS

_LISTENER = "inter.broker.listener.name"
_DEFAULT_LISTENER = "security.inter.broker.protocol"
_QUORUM = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
_AUTHORIZER = "authorizer.class.name"
_Said = tuple[Weight, str, str]
"""A finding of one controller: its weight, what is so, and what to do."""


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller by its file of properties; name: how it is told."""

    name: str
    config: Mapping[str, str]


def read_controllers(files: Sequence[Path]) -> list[Controller]:
    """Read controllers' files of properties; raises ConfigurationError naming one."""
    return [Controller(str(file), read_properties(file)) for file in files]


def without_what_is_done(
    findings: Iterable[Finding], controllers: Sequence[Controller]
) -> Iterator[Finding]:
    """Yield the findings but for those that ask for a setting which all controllers have."""
    for one in findings:
        keys = one.settled_by
        if not controllers or not all(_has_any(controller, keys) for controller in controllers):
            yield one


def controller_findings(
    controllers: Sequence[Controller], brokers: Mapping[int, Configs], connect: str
) -> Iterator[Finding]:
    """Yield what is found of controllers; brokers: what each says of its configuration, connect:
    the ZooKeeper that they have.
    """
    names: defaultdict[str, list[str]] = defaultdict(list)
    for controller in controllers:
        names[controller.config.get("node.id", "")].append(controller.name)
        for weight, what, remedy in _of_one(controller.config, brokers, connect):
            yield Finding(weight, controller.name, what, remedy)
    for id_, ones in names.items():
        if len(ones) > 1:
            what = f"they have the same node.id, {id_ or 'none'}"
            yield Finding(Weight.STOPS, ", ".join(ones), what, "give each an id of its own")


def _has_any(controller: Controller, keys: Iterable[str]) -> bool:
    return any(controller.config.get(key) for key in keys)


def _of_one(
    config: Mapping[str, str], brokers: Mapping[int, Configs], connect: str
) -> Iterator[_Said]:
    roles = config.get("process.roles", "")
    if roles != "controller":
        what = f"process.roles = {roles or 'nothing'}, and a controller that migrates is no broker"
        yield Weight.STOPS, what, "set process.roles=controller"
    if (id_ := config.get("node.id", "")) in map(str, brokers):
        yield Weight.STOPS, f"node.id = {id_}, which a broker has", "give it another"
    if config.get(MIGRATION_ENABLED) != "true":
        yield Weight.TO_DO, f"{MIGRATION_ENABLED} is not set", "set it"
    theirs = config.get("zookeeper.connect", "")
    if not theirs:
        yield Weight.STOPS, "zookeeper.connect is not set", "set it as brokers have it"
    elif _chroot(theirs) != _chroot(connect):
        what = f"zookeeper.connect = {theirs}, and the cluster is at {connect}"
        yield Weight.STOPS, what, "set it as brokers have it"
    yield from _listener(config, brokers)
    yield from _quorum(config, brokers)
    yield from _authorizer(config, brokers)


def _listener(config: Mapping[str, str], brokers: Mapping[int, Configs]) -> Iterator[_Said]:
    """A broker registers with a controller only if it has the listener that this one asks at."""
    name = (config.get(_LISTENER) or config.get(_DEFAULT_LISTENER) or "PLAINTEXT").upper()
    listeners = {id_: _listed(told.get("listeners")) for id_, told in brokers.items()}
    without = [id_ for id_, known in listeners.items() if known and name not in known]
    if without:
        what = f"it would tell brokers at their listener {name}, and {_named(without)} have none"
        yield Weight.STOPS, what, f"set {_LISTENER} as brokers have it"


def _quorum(config: Mapping[str, str], brokers: Mapping[int, Configs]) -> Iterator[_Said]:
    """Brokers that look for a quorum already have to look for this one."""
    if not any(config.get(key) for key in _QUORUM):
        yield Weight.STOPS, f"neither {' nor '.join(_QUORUM)} is set", "set one of them"
    for key in _QUORUM:
        ours = _listed(config.get(key))
        theirs = {id_: _listed(told.get(key)) for id_, told in brokers.items()}
        others = [id_ for id_, known in theirs.items() if ours and known and known != ours]
        if others:
            what = f"{key} = {config[key]}, and {_named(others)} have another"
            yield Weight.STOPS, what, "have the same everywhere"


def _authorizer(config: Mapping[str, str], brokers: Mapping[int, Configs]) -> Iterator[_Said]:
    theirs = {told.get(_AUTHORIZER) for told in brokers.values()}
    if not KAFKAS_AUTHORIZERS.isdisjoint(theirs) and not config.get(_AUTHORIZER):
        what = "it has no authorizer, and brokers have: it would let everybody change everything"
        yield Weight.CHANGES, what, f"set {STANDARD_AUTHORIZER}, and super.users as brokers have it"


def _chroot(connect: str) -> str:
    return connect.partition("/")[2].strip("/")


def _listed(text: str | None) -> set[str]:
    """Return what is in a list; of listeners only the names."""
    names = (one.partition("://")[0].strip().upper() for one in (text or "").split(","))
    return {name for name in names if name}


def _named(brokers: Iterable[int]) -> str:
    return such_as([f"broker {id_}" for id_ in brokers])
