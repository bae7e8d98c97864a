"""The numbers of quotas, which are text in the configurations of clients, users and addresses."""

from __future__ import annotations

import re

_JAVAS_NUMBER = re.compile(
    r"\s*[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)\s*", re.ASCII
)
"""What Double.valueOf takes, but for hexadecimal numbers."""


def quota_value(text: str) -> float:
    """Return a quota as brokers read it (Double.valueOf); raises ValueError."""
    if not _JAVAS_NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    return float(text.strip().rstrip("fFdD"))
