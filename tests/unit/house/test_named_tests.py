"""Tests and modules of tests that the documents name exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_MODULE = re.compile(r"(?<![\w/])tests/[\w/]+\.py\b")


def documents(root: Path) -> list[str]:
    paths = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    return [path.read_text("utf-8") for path in paths]


def named(root: Path) -> list[tuple[str, str]]:
    return sorted({found for text in documents(root) for found in _NAMED.findall(text)})


def functions(path: Path) -> set[str]:
    return {
        node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)
    }


def test_every_named_test_is_there(root: Path) -> None:
    found = named(root)
    assert len(found) > 10
    missing = [f"{path}::{name}" for path, name in found if name not in functions(root / path)]
    assert not missing


def test_every_named_module_is_there(root: Path) -> None:
    found = {path for text in documents(root) for path in _MODULE.findall(text)}
    assert len(found) > 30
    assert not [path for path in sorted(found) if not (root / path).is_file()]


@pytest.mark.parametrize("text", ["`tests/a/b.py::test_x`", "see `tests/b.py::test_y` for it"])
def test_a_name_is_found_in_a_text(text: str) -> None:
    assert len(_NAMED.findall(text)) == 1
