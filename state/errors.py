"""Errors of the pure core, told apart by whose mistake they are."""

from __future__ import annotations


class StateError(Exception):
    """Base of every error raised by the pure core."""


class MalformedEvent(StateError):
    """An event whose payload does not say what its kind requires.

    The fold never lets it out: the event is set aside with its offset and this reason.
    """


class CorruptBlock(StateError):
    """Bytes that are not a column block of a known format version."""
