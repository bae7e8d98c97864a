"""A machine's dispatch table: which function folds which payload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from state.decisions import Decision
from state.events import Event

_Machine = TypeVar("_Machine")

Handlers: TypeAlias = Mapping[type[Any], Callable[[_Machine, Event, Any], list[Decision]]]
"""By a payload's type: takes the machine, the event and its payload, and returns what is decided.
"""
