"""Configurations of users in a real ZooKeeper, as Kafka's tools write them."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from streaming.front.user_configs import ZkUserConfigs
from streaming.settings_loader import load_settings
from streaming.zk.client import ZkSession
from streaming.zk.znodes.paths import sanitized

CHANGES = "/config/changes"


@pytest.fixture
def users(zookeeper: str) -> ZkUserConfigs:
    return ZkUserConfigs(load_settings(overrides=[f"zookeeper.connect={zookeeper}"]))


def test_configs_are_set_and_removed_and_brokers_notified(
    users: ZkUserConfigs, zookeeper: str
) -> None:
    name = "a b*~ü"
    path = f"/config/users/{sanitized(name)}"
    steps: list[tuple[dict[str, str | None], bool, dict[str, str]]] = [
        ({"x": "1", "y": "2"}, True, {"x": "1", "y": "2"}),
        ({"x": None, "z": "3"}, True, {"y": "2", "z": "3"}),
        ({"y": "9", "x": None}, False, {"y": "2", "z": "3"}),
        ({"y": None, "z": None}, True, {}),
    ]
    session = ZkSession(zookeeper, 6_000)
    session.connect()
    for changes, done, left in steps:
        assert asyncio.run(users.alter(name, changes)) is done
        znode = session.get(path)
        assert znode is not None
        assert orjson.loads(znode.data) == {"version": 1, "config": left}
    notes = sorted(session.children(CHANGES))
    assert len(notes) == 3
    for note in notes:
        znode = session.get(f"{CHANGES}/{note}")
        assert znode is not None
        expected = {"version": 2, "entity_path": f"users/{sanitized(name)}"}
        assert orjson.loads(znode.data) == expected
    session.close()


def test_names_are_znode_names_as_kafka_makes_them() -> None:
    assert sanitized("a b*~/%.-_ü") == "a%20b%2A%7E%2F%25.-_%C3%BC"


def test_a_znode_that_nobody_can_read_is_left_alone(users: ZkUserConfigs, zookeeper: str) -> None:
    session = ZkSession(zookeeper, 6_000)
    session.connect()
    session.ensure_path("/config/users")
    session.create("/config/users/u", b"no json")
    with pytest.raises(OSError, match="user 'u' was not changed"):
        asyncio.run(users.alter("u", {"x": "1"}))
    znode = session.get("/config/users/u")
    assert znode is not None
    assert znode.data == b"no json"
    session.close()
