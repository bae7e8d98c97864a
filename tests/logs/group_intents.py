"""Draws what random logs of consumer groups tell."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from tests.logs.group_logs import Author
from tests.logs.group_parts import WEIGHTS

Intent = tuple[str, int, int, int]

_NAMES = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
_NUMBERS = st.integers(0, 63)
INTENTS = st.lists(
    st.tuples(st.sampled_from(_NAMES), _NUMBERS, _NUMBERS, _NUMBERS), min_size=8, max_size=50
)


def authored(intents: list[Intent]) -> Author:
    """Return the author of the log that the intents tell."""
    author = Author()
    for name, *numbers in intents:
        getattr(author, name)(*numbers)
    return author


def random_intents(seed: int, count: int) -> list[Intent]:
    """Return intents for a long log."""
    chance = random.Random(seed)
    return [
        (chance.choice(_NAMES), *(chance.randrange(64) for _ in range(3))) for _ in range(count)
    ]


def long_log(seed: int) -> Author:
    """Return the author of a log of sixty intents: more than Hypothesis likes to draw."""
    return authored(random_intents(seed, 60))


LOGS = INTENTS.map(authored) | st.integers(0, 2**32).map(long_log)
