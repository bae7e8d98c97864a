"""Access control lists, judged as AclAuthorizer does."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from streaming.security.acls import (
    ANY,
    Acl,
    AclTable,
    Client,
    Operation,
    Pattern,
    ResourceType,
)
from streaming.security.authorizer import AclAuthorizer, operation_bits

ALICE = Client("User:alice", "10.0.0.1")
TOPIC = ResourceType.TOPIC
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
Lists = Mapping[str, list[Acl]]


def allow(operation: Operation, principal: str = "User:alice", host: str = ANY) -> Acl:
    return Acl(principal, host, operation, allowed=True)


def deny(operation: Operation, principal: str = "User:alice", host: str = ANY) -> Acl:
    return Acl(principal, host, operation, allowed=False)


def table(lists: Lists) -> AclTable:
    """A name that ends with > is that of a prefix."""
    return AclTable(
        {
            Pattern(TOPIC, name.removesuffix(">"), name.endswith(">")): acls
            for name, acls in lists.items()
        }
    )


@pytest.mark.parametrize(
    ("lists", "operation", "expected"),
    [
        ({}, READ, None),
        ({"b": [allow(READ)]}, READ, None),
        ({"a1": []}, READ, None),
        ({"a1": [allow(READ)]}, READ, True),
        ({"a1": [allow(WRITE)]}, READ, False),
        ({"a1": [allow(Operation.ALL)]}, READ, True),
        ({"a1": [allow(READ, "User:bob")]}, READ, False),
        ({"a1": [allow(READ, "User:*")]}, READ, True),
        ({"a1": [allow(READ, "Group:*")]}, READ, False),
        ({"a1": [allow(READ, host="10.0.0.1")]}, READ, True),
        ({"a1": [allow(READ, host="10.0.0.2")]}, READ, False),
        ({"*": [allow(READ)]}, READ, True),
        ({"*>": [allow(READ)]}, READ, None),
        ({"a>": [allow(READ)]}, READ, True),
        ({"a1>": [allow(READ)]}, READ, True),
        ({"a11>": [allow(READ)]}, READ, None),
        ({"a1": [allow(READ), deny(READ)]}, READ, False),
        ({"a1": [allow(READ)], "*": [deny(READ)]}, READ, False),
        ({"a1": [allow(READ)], "a>": [deny(Operation.ALL, "User:*")]}, READ, False),
        ({"a1": [allow(READ)], "a>": [deny(READ, "User:bob")]}, READ, True),
        ({"a1": [allow(READ)], "b>": [deny(READ)]}, READ, True),
        ({"a1": [allow(READ)]}, DESCRIBE, True),
        ({"a1": [allow(Operation.ALTER)]}, DESCRIBE, True),
        ({"a1": [allow(Operation.CREATE)]}, DESCRIBE, False),
        ({"a1": [allow(Operation.ALTER_CONFIGS)]}, Operation.DESCRIBE_CONFIGS, True),
        ({"a1": [allow(Operation.ALTER_CONFIGS)]}, DESCRIBE, False),
        ({"a1": [allow(WRITE), deny(READ)]}, DESCRIBE, True),
        ({"a1": [allow(READ), deny(DESCRIBE)]}, DESCRIBE, False),
        ({"a1": [allow(READ), deny(DESCRIBE)]}, READ, True),
        ({"a1": [allow(DESCRIBE)]}, READ, False),
    ],
)
def test_who_may_do_what_with_a_topic(
    lists: Lists, operation: Operation, expected: bool | None
) -> None:
    assert table(lists).permits(ALICE, operation, TOPIC, "a1") is expected
    for others in (True, False):
        authorizer = AclAuthorizer({"User:root"}, allow_without_acls=others)
        authorizer.take(table(lists))
        found = authorizer.permits(ALICE, (operation, TOPIC, "a1"))
        assert found is (others if expected is None else expected)
        assert authorizer.permits(Client("User:root", "?"), (operation, TOPIC, "a1"))


def test_a_topic_is_no_group() -> None:
    assert table({"a1": [allow(READ)]}).permits(ALICE, READ, ResourceType.GROUP, "a1") is None


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ({}, None),
        ({"a": [allow(READ)]}, None),
        ({"a": [allow(WRITE)]}, True),
        ({"a": [allow(Operation.ALL)]}, True),
        ({"a": [allow(WRITE, "User:bob")]}, None),
        ({"a>": [allow(WRITE)]}, True),
        ({"*": [allow(WRITE)]}, True),
        ({"a": [allow(WRITE)], "*": [deny(WRITE)]}, False),
        ({"*": [deny(WRITE, "User:*")]}, False),
        ({"a": [allow(WRITE), deny(WRITE)]}, None),
        ({"ab": [allow(WRITE)], "a>": [deny(WRITE)]}, None),
        ({"ab>": [allow(WRITE)], "a>": [deny(WRITE)]}, None),
        ({"a>": [allow(WRITE)], "ab>": [deny(WRITE)]}, True),
        ({"a>": [allow(WRITE)], "ab": [deny(WRITE)]}, True),
        ({"ab": [allow(WRITE)], "a>": [deny(WRITE)], "b": [allow(WRITE)]}, True),
        ({"*": [allow(WRITE)], "a>": [deny(WRITE)]}, True),
    ],
)
def test_whether_there_is_a_topic_to_write_to(lists: Lists, expected: bool | None) -> None:
    assert table(lists).permits_some(ALICE, WRITE, TOPIC) is expected
    open_to_all = AclAuthorizer((), allow_without_acls=True)
    open_to_all.take(table(lists))
    assert open_to_all.permits(ALICE, (WRITE, TOPIC, None)) is (expected is not False)


def test_operations_are_bits() -> None:
    assert operation_bits((READ, DESCRIBE)) == 0b100001000
