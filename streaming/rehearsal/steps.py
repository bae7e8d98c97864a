"""The steps of a rehearsal, as they are asked for: kill=rack:a stop=3 start=3,4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from streaming.errors import ConfigurationError
from streaming.setting_types import INT_MAX

_RACK = "rack:"


class StepKind(StrEnum):
    """KILL: brokers are gone, all at once. STOP: they ask for a controlled shutdown, one after the
    other, and go. START: they come, and their replicas catch up.
    """

    KILL = "kill"
    STOP = "stop"
    START = "start"


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to some brokers: those with these ids, and all in these racks that it can happen
    to.
    """

    kind: StepKind
    brokers: tuple[int, ...]
    racks: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as it is asked for."""
        named = [*map(str, self.brokers), *(f"{_RACK}{rack}" for rack in self.racks)]
        return f"{self.kind}={','.join(named)}"


def parsed_steps(given: Sequence[str]) -> list[Step]:
    """Return steps given as kind=ID,rack:NAME; raises ConfigurationError naming what is wrong."""
    return [_parsed(one) for one in given]


def _parsed(given: str) -> Step:
    kind, separator, brokers = (part.strip() for part in given.partition("="))
    if not separator or kind not in {*StepKind}:
        forms = ", ".join(f"{one}=BROKERS" for one in StepKind)
        raise ConfigurationError(
            f"step {given!r}: allowed are {forms}, with ids and {_RACK}NAME, separated by commas"
        )
    named = dict.fromkeys(one.strip() for one in brokers.split(","))
    racks = [one for one in named if one.startswith(_RACK)]
    ids = dict.fromkeys(_id(given, one) for one in named if one not in racks)
    return Step(StepKind(kind), tuple(ids), tuple(one.removeprefix(_RACK) for one in racks))


def _id(given: str, number: str) -> int:
    if not (number.isascii() and number.isdecimal() and int(number) <= INT_MAX):
        raise ConfigurationError(f"step {given!r}: {number!r} is no broker id")
    return int(number)
