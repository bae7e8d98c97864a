"""The steps of a rehearsal, as they are asked for: kill=7,8 stop=3 start=3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from streaming.errors import ConfigurationError
from streaming.settings import INT_MAX


class StepKind(StrEnum):
    """KILL: brokers are gone, all at once. STOP: they ask for a controlled shutdown, one after the
    other, and go. START: they come, and their replicas catch up.
    """

    KILL = "kill"
    STOP = "stop"
    START = "start"


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to some brokers, without the same one twice."""

    kind: StepKind
    brokers: tuple[int, ...]

    def __str__(self) -> str:
        """Return it as it is asked for."""
        return f"{self.kind}={','.join(map(str, self.brokers))}"


def parsed_steps(given: Sequence[str]) -> list[Step]:
    """Return steps given as kind=broker,broker; raises ConfigurationError naming what is wrong."""
    return [_parsed(one) for one in given]


def _parsed(given: str) -> Step:
    kind, separator, brokers = (part.strip() for part in given.partition("="))
    if not separator or kind not in {*StepKind}:
        forms = ", ".join(f"{one}=ID[,ID...]" for one in StepKind)
        raise ConfigurationError(f"step {given!r}: allowed are {forms}")
    ids = [_id(given, one) for one in brokers.split(",")]
    return Step(StepKind(kind), tuple(dict.fromkeys(ids)))


def _id(given: str, text: str) -> int:
    number = text.strip()
    if not (number.isascii() and number.isdecimal() and int(number) <= INT_MAX):
        raise ConfigurationError(f"step {given!r}: {number!r} is no broker id")
    return int(number)
