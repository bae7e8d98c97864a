"""What consumers subscribe to, read from what they send."""

from __future__ import annotations

import base64

import pytest

from state.groups.subscription import subscribed_topics
from tests.unit.state.group_support import metadata


def encoded(data: str) -> str:
    return base64.b64encode(bytes.fromhex(data)).decode()


@pytest.mark.parametrize(
    "data",
    [
        "",
        "0000",
        "ffff 00000001",
        "0000 00000002",
        "0000 00000001 0005 61",
        "0000 00000001 0001 61",
        "0000 00000001 0001 61 0000",
        "0000 00000001 0001 61 00000002 ff",
    ],
)
def test_a_subscription_that_cannot_be_read_is_not_known(data: str) -> None:
    """One that ends before its user data is none."""
    assert subscribed_topics([metadata("a"), encoded(data)]) is None


@pytest.mark.parametrize("rest", ["ffffffff", "00000000", "00000001 ff", "ffffffff 00000000"])
def test_what_follows_the_topics_of_a_subscription_is_passed_over(rest: str) -> None:
    assert subscribed_topics([encoded(f"0003 00000001 0001 61 {rest}")]) == ("a",)


def test_subscriptions_are_put_together() -> None:
    assert subscribed_topics([metadata("b", "ü"), metadata("a", "b")]) == ("a", "b", "ü")
    assert subscribed_topics([]) == ()
