"""The end of a term, as what waits for something of that term hears of it."""

from __future__ import annotations


class TermOver(Exception):
    """What was led is led no more, or is taken over again; the message says why."""
