"""state/ is pure, and the check that says so catches what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.house.purity import impurities


def test_every_module_of_state_is_pure(root: Path) -> None:
    found = [
        f"{path.relative_to(root)}: {impurity}"
        for path in sorted((root / "state").rglob("*.py"))
        for impurity in impurities(path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("import time", "time"),
        ("from datetime import datetime", "datetime"),
        ("import os.path", "os.path"),
        ("from uuid import uuid4", "uuid"),
        ("import streaming.log", "streaming.log"),
        ("from streaming.log import api", "streaming.log"),
        ("def f():\n    import random", "random"),
        ("from numpy.random import default_rng", "numpy.random"),
        ("from numpy import random", "numpy.random"),
        ("import numpy as np\nnp.random.seed(1)", "numpy.random"),
        ("import numpy\nnumpy.random.seed(1)", "numpy.random"),
        ("slot = hash('topic') % 64", "hash()"),
        ("print('x')", "print()"),
        ("with open('x') as file: pass", "open()"),
        ("key = id(object())", "id()"),
    ],
)
def test_an_impure_line_is_found(source: str, named: str) -> None:
    assert any(named in impurity for impurity in impurities(source))


def test_pure_lines_pass() -> None:
    source = (
        "from __future__ import annotations\nimport zlib\nimport numpy as np\n"
        "class Broker:\n    id: int\n"
        "from state.blocks import pack\nx = np.zeros(3)\ny = zlib.crc32(b'a')\n"
    )
    assert list(impurities(source)) == []
