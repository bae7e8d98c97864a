"""Counters for the status."""

from __future__ import annotations

from collections import Counter

Counters = Counter[str]
"""How often each thing worth an operator's eye happened, by its name in the status."""
