"""Paths that the tests of the house share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of pyproject.toml."""
    return Path(__file__).parents[3]
