"""What is found of a cluster that is to be migrated to KRaft (KIP-866)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

_SHOWN = 3


class Weight(Enum):
    """What a finding means.

    STOPS: the migration does not begin, or fails, as long as it is so. CHANGES: something is lost
    by it, or not as before. TO_DO: has to be done for it anyway.
    """

    STOPS = "stops"
    CHANGES = "changes"
    TO_DO = "to_do"


@dataclass(frozen=True, slots=True)
class Finding:
    """One of them: what it is about, what is so, and what to do.

    settled_by: settings of controllers of which one settles it.
    """

    weight: Weight
    where: str
    what: str
    remedy: str
    settled_by: tuple[str, ...] = ()


def such_as(names: Collection[str]) -> str:
    """Return some of many names, in order, for a message."""
    shown: Iterable[str] = sorted(names)[:_SHOWN]
    return ", ".join(shown) + (", ..." if len(names) > _SHOWN else "")
