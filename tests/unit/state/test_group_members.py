"""What a group asks of one of its members."""

from __future__ import annotations

import pytest

from state.groups.group import Group
from state.groups.member import Member


def member(*protocols: tuple[str, str]) -> Member:
    return Member("m", None, "c", "/h", 10, 20, protocols)


def test_of_two_protocols_with_the_same_name_the_first_counts() -> None:
    """As it does for Kafka (MemberMetadata.metadata)."""
    one = member(("range", "YQ=="), ("sticky", ""), ("range", "Yg=="))
    assert (one.metadata("range"), one.metadata("sticky")) == ("YQ==", "")
    assert (one.metadata_if_any("range"), one.metadata_if_any("sticky")) == ("YQ==", "")
    group = Group("g", 0)
    group.add(one, "consumer")
    assert group.support == {"range": 1, "sticky": 1}


def test_a_protocol_that_a_member_has_not_named_has_no_metadata() -> None:
    one = member(("range", "YQ=="))
    assert (one.metadata_if_any("sticky"), one.metadata_if_any(None)) == ("", "")
    with pytest.raises(KeyError, match="sticky"):
        one.metadata("sticky")
