"""What the command line has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer.main
from typer.core import TyperGroup


def commands_of(app: typer.Typer) -> Mapping[str, Any]:
    """Return the commands of a command line by name."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group.commands
