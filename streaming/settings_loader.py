"""Reads settings from their sources, later over earlier, and says what is wrong in which."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from streaming.errors import ConfigurationError
from streaming.setting_checks import check_together
from streaming.setting_types import Mode
from streaming.settings import Settings, known_keys

ENVIRONMENT_PREFIX = "HELMSTREAM_"
# Where downloads are kept and come from: matters of the machine, not knobs of the controller.
NOT_SETTINGS = frozenset(
    {"HELMSTREAM_CACHE", "HELMSTREAM_CLASS_ARCHIVES", "HELMSTREAM_IVY_SETTINGS"}
)
_OF_A_SERVICE = re.compile(r"HELMSTREAM_(SERVICE_\w+|PORT(_\w+)?)")
"""What Kubernetes gives every pod beside a Service that is called helmstream."""


@dataclass(frozen=True, slots=True)
class Source:
    """Keys and raw values from one place, with the name the user knows it by."""

    name: str
    values: Mapping[str, Any]


def load_settings(
    files: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Settings from default.toml, the mode's overlay, `files`, environment and `key=value`s.

    The overlay is the one of the mode that the strongest source names. Raises ConfigurationError
    naming each unknown key with the nearest known one, and each bad value with what is allowed.
    """
    default = conf_source("default")
    given = [
        *(_file_source(path) for path in files),
        _environment_source(os.environ if environment is None else environment),
        _override_source(overrides),
    ]
    _refuse_unknown(given)
    sources = [default, *_overlay(_mode([default, *given])), *given]
    merged = {key: value for source in sources for key, value in source.values.items()}
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        raise ConfigurationError(
            "\n".join(_complaint(detail, sources) for detail in error.errors())
        ) from error
    check_together(settings)
    return settings


def checked_value(key: str, value: str) -> Any:
    """Return what a setting's value is, by itself; raises ConfigurationError saying what is
    allowed.
    """
    try:
        settings = Settings.model_validate({**conf_source("default").values, key: value})
    except ValidationError as error:
        raise ConfigurationError(allowed_values(key)) from error
    return getattr(settings, known_keys()[key])


def conf_source(name: str) -> Source:
    """One of the files in conf/, as installed."""
    text = resources.files("streaming").joinpath("conf", f"{name}.toml").read_text("utf-8")
    return Source(f"conf/{name}.toml", tomllib.loads(text))


def nearest_known(key: str, known: Iterable[str]) -> str | None:
    """The known name most like `key`, or None when none is like it."""
    matches = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    return matches[0] if matches else None


def _overlay(mode: object) -> list[Source]:
    return [conf_source(str(mode))] if mode in get_args(Mode) else []


def _file_source(path: Path) -> Source:
    try:
        return Source(str(path), _flattened(tomllib.loads(path.read_text("utf-8"))))
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from error


def _flattened(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """TOML reads an unquoted a.b = 1 as a table in a table: the same key is meant."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flattened(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _environment_source(environment: Mapping[str, str]) -> Source:
    variables = {_variable(key): key for key in known_keys()}
    values: dict[str, str] = {}
    for name, value in environment.items():
        if not name.startswith(ENVIRONMENT_PREFIX) or name in NOT_SETTINGS:
            continue
        if name not in variables and _OF_A_SERVICE.fullmatch(name):
            continue
        if name not in variables:
            raise ConfigurationError(
                _unknown("environment variable", name, nearest_known(name, variables))
            )
        values[variables[name]] = value
    return Source("the environment", values)


def _variable(key: str) -> str:
    return ENVIRONMENT_PREFIX + key.replace(".", "_").upper()


def _override_source(overrides: Sequence[str]) -> Source:
    values: dict[str, str] = {}
    for override in overrides:
        key, separator, value = override.partition("=")
        if not separator:
            raise ConfigurationError(f"--set {override!r} is not of the form key=value")
        values[key.strip()] = value.strip()
    return Source("--set", values)


def _refuse_unknown(sources: Sequence[Source]) -> None:
    known = known_keys()
    complaints = [
        _unknown("configuration key", key, nearest_known(key, known), source.name)
        for source in sources
        for key in source.values
        if key not in known
    ]
    if complaints:
        raise ConfigurationError("\n".join(complaints))


def _unknown(what: str, name: str, nearest: str | None, source: str = "") -> str:
    place = f" in {source}" if source else ""
    hint = f"; did you mean {nearest}?" if nearest else "; conf/default.toml lists all keys"
    return f"unknown {what} {name}{place}{hint}"


def _mode(sources: Sequence[Source]) -> object:
    """Return the mode that the strongest source names."""
    return next(one.values["mode"] for one in reversed(sources) if "mode" in one.values)


def _complaint(detail: ErrorDetails, sources: Sequence[Source]) -> str:
    key = str(detail["loc"][0])
    origin = next(source.name for source in reversed(sources) if key in source.values)
    secret = "writeOnly" in Settings.model_json_schema()["properties"][key]
    given = "(a secret)" if secret else repr(detail["input"])
    return f"{key} = {given} in {origin} is not allowed: {allowed_values(key)}"


def allowed_values(key: str) -> str:
    """What a key may be set to, in words, from the model."""
    schema = Settings.model_json_schema()["properties"][key]
    if "enum" in schema:
        return "allowed are " + ", ".join(one or "nothing" for one in schema["enum"])
    if schema["type"] == "boolean":
        return "allowed are true, false"
    if schema["type"] == "integer":
        return f"allowed is a whole number, {schema['minimum']} to {schema['maximum']}"
    return f"allowed is {schema['description']}"
