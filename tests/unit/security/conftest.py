"""Keys for the tests of security."""

from __future__ import annotations

import pytest

from tests.unit.security.support import Files


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))
