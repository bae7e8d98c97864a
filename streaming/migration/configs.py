"""What a KRaft controller would read of configurations, and could not take as it is
(ZkConfigMigrationClient).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streaming.metadata_log.codes import QUOTA_ENTITIES
from streaming.migration.controllers import Controller
from streaming.migration.findings import Finding, Weight, such_as
from streaming.security.encoded_passwords import SECRETS, decoded
from streaming.security.scram import DIGESTS, parse_credential
from streaming.zk.znodes import CONFIG_PATH, parse_config
from streaming.zk.znodes.paths import DEFAULT_ENTITY
from streaming.zk.znodes.quotas import quota_value

_BROKERS = "brokers"
_QUOTAS = frozenset(QUOTA_ENTITIES.values())
KINDS = ("topics", _BROKERS, *sorted(_QUOTAS))
"""Of entities that have configurations, as znodes are called."""
_SECRET = SECRETS[0]
_PASSWORDS = (
    "password",
    "sasl.jaas.config",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
)
"""What names of configurations end with that brokers encode (Kafka's type PASSWORD)."""


def is_password(key: str) -> bool:
    """Return whether a configuration is one that brokers encode."""
    return key.endswith(_PASSWORDS)


def config_findings(
    configs: Mapping[str, bytes], controllers: Sequence[Controller] = ()
) -> Iterator[Finding]:
    """Yield what is found; configs: the data of each entity's znode by its path. controllers: those
    that are to read it, if they are known.
    """
    encoded: dict[str, dict[str, str]] = {}
    for path, data in configs.items():
        try:
            config = parse_config(data)
        except ValueError as error:
            yield _stops(path, f"it cannot be read: {error}")
            continue
        kind, name, *below = path.removeprefix(f"{CONFIG_PATH}/").split("/")
        if kind == _BROKERS:
            if name != DEFAULT_ENTITY and not name.isdecimal():
                yield _stops(path, f"{name} is no broker")
            if passwords := {key: text for key, text in config.items() if is_password(key)}:
                encoded[path] = passwords
        elif kind in _QUOTAS:
            yield from _quotas(path, config, has_credentials=not below)
    if encoded:
        yield Finding(
            Weight.TO_DO,
            such_as([*encoded]),
            "there are passwords that brokers have encoded",
            "give the KRaft controllers the brokers' password.encoder.secret",
            settled_by=(_SECRET,),
        )
    for controller in controllers:
        yield from _not_decoded(controller, encoded)


def _not_decoded(
    controller: Controller, encoded: Mapping[str, Mapping[str, str]]
) -> Iterator[Finding]:
    """A controller has one secret for what brokers have encoded, and ends at what it cannot read;
    without one it takes what is encoded for the password.
    """
    secret = controller.config.get(_SECRET)
    if not secret:
        return
    for path, passwords in encoded.items():
        for key, text in passwords.items():
            try:
                decoded(text, [secret])
            except ValueError as error:
                what = f"its {_SECRET} does not decode {key} of {path}: {error}"
                remedy = "have one secret at brokers and controllers, or set the password again"
                yield Finding(Weight.STOPS, controller.name, what, remedy)


def _quotas(path: str, config: Mapping[str, str], *, has_credentials: bool) -> Iterator[Finding]:
    """What is no credential of SCRAM has to be a number; has_credentials: whether there may be."""
    for key, value in config.items():
        parse = parse_credential if has_credentials and key in DIGESTS else quota_value
        try:
            parse(value)
        except ValueError as error:
            yield _stops(path, f"{key} cannot be read: {error}")


def _stops(path: str, what: str) -> Finding:
    return Finding(Weight.STOPS, path, what, "mend it, or delete it")
