"""What a new controller makes of /feature, for brokers of old and new protocols."""

from __future__ import annotations

import pytest

from streaming.front.preparation import feature_write
from streaming.zk.ops import Create, SetData
from streaming.zk.types import ZNode
from streaming.zk.znodes import FEATURE_PATH

ENABLED_1 = b'{"features":{},"version":1,"status":1}'
ENABLED_2 = b'{"features":{},"version":2,"status":1}'
DISABLED_1 = b'{"features":{},"version":1,"status":0}'
WITH_FEATURES = (
    b'{"features":{"f":{"max_version_level":3,"min_version_level":3}},"version":1,"status":1}'
)


def znode(data: bytes) -> ZNode:
    return ZNode(data, 4, 1, 1, 0, 0)


@pytest.mark.parametrize(
    ("protocol", "data"), [((2, 6), DISABLED_1), ((2, 7), ENABLED_1), ((3, 9), ENABLED_2)]
)
def test_a_missing_one_is_created(protocol: tuple[int, int], data: bytes) -> None:
    assert feature_write(None, protocol) == Create(FEATURE_PATH, data)


@pytest.mark.parametrize(
    ("protocol", "held", "wanted"),
    [
        ((2, 6), ENABLED_1, DISABLED_1),
        ((2, 6), WITH_FEATURES, DISABLED_1),
        ((2, 8), DISABLED_1, ENABLED_1),
        ((3, 9), DISABLED_1, ENABLED_2),
        ((3, 9), ENABLED_1, ENABLED_2),
        (
            (3, 9),
            WITH_FEATURES,
            b'{"features":{"f":{"max_version_level":3}},"version":2,"status":1}',
        ),
    ],
)
def test_another_one_is_replaced(protocol: tuple[int, int], held: bytes, wanted: bytes) -> None:
    assert feature_write(znode(held), protocol) == SetData(FEATURE_PATH, wanted, 4)


@pytest.mark.parametrize(
    ("protocol", "held"),
    [((2, 6), DISABLED_1), ((2, 8), ENABLED_1), ((2, 8), WITH_FEATURES), ((3, 9), ENABLED_2)],
)
def test_the_right_one_stays(protocol: tuple[int, int], held: bytes) -> None:
    assert feature_write(znode(held), protocol) is None


def test_one_that_cannot_be_read_is_left_alone() -> None:
    assert feature_write(znode(b"{"), (3, 9)) is None
    assert feature_write(znode(b"{}"), (3, 9)) is None
