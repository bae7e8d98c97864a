"""The rack of this node follows from the brokers' racks."""

from __future__ import annotations

import pytest

from streaming.image.racks import controller_rack


@pytest.mark.parametrize(
    ("racks", "expected"),
    [
        ({}, None),
        ({1: None}, None),
        ({3: "c", 1: "a", 2: "b"}, "a"),
        ({1: "a", 2: None}, None),
        ({2: "b", 1: None}, None),
    ],
)
def test_a_rack_only_when_every_broker_has_one(
    racks: dict[int, str | None], expected: str | None
) -> None:
    assert controller_rack(racks) == expected
