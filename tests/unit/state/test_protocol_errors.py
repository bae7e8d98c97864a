"""Error codes and their names."""

from __future__ import annotations

import pytest

from state.protocol_errors import error_text


@pytest.mark.parametrize(
    ("code", "text"), [(41, "NOT_CONTROLLER (41)"), (-1, "UNKNOWN_SERVER_ERROR (-1)"), (104, "104")]
)
def test_a_code_is_shown_with_its_name_if_that_is_known(code: int, text: str) -> None:
    assert error_text(code) == text
