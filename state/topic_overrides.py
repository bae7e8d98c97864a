"""What a topic's own configuration says about decisions, however it was written.

Kafka reads values without the blanks around them, and numbers with a sign (ConfigDef.parseType).
"""

from __future__ import annotations

import re

from state.json_values import int32

UNCLEAN = "unclean.leader.election.enable"
MIN_INSYNC = "min.insync.replicas"
_WHOLE = re.compile(r"[+-]?[0-9]+")


def unclean_of(text: str | None) -> bool | None:
    """Return whether leaders may be elected outside the ISR; None where nothing is said."""
    return None if text is None else text.strip().lower() == "true"


def is_whole_number(text: str) -> bool:
    """Return whether a value is read as a whole number, however large."""
    return _WHOLE.fullmatch(text.strip()) is not None


def min_insync_of(text: str | None) -> int | None:
    """Return how many replicas have to be in sync; None where nothing is said. Raises ValueError
    for what is no number of 32 bits.
    """
    if text is None:
        return None
    if not is_whole_number(text):
        raise ValueError(f"{MIN_INSYNC} is {text!r}, not a whole number")
    return int32(int(text))
