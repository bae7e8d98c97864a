"""Rates of creations and deletions in a real ZooKeeper, as Kafka's tools write them."""

from __future__ import annotations

import asyncio

import pytest

from streaming.front.mutation_rates import ZkMutationRates
from streaming.gateway.mutation_quotas import Rate
from streaming.settings_loader import load_settings
from streaming.zk.znodes import config_bytes

BOTH, USER, CLIENT = ("a b", "c/d"), ("a b", ""), ("", "c/d")
PLACES = [
    ("users/a%20b/clients/c%2Fd", BOTH),
    ("users/a%20b/clients/<default>", BOTH),
    ("users/a%20b", USER),
    ("users/<default>/clients/c%2Fd", BOTH),
    ("users/<default>/clients/<default>", BOTH),
    ("users/<default>", USER),
    ("clients/c%2Fd", CLIENT),
    ("clients/<default>", CLIENT),
]
"""Where a rate may be, and who shares it, the one that counts most first."""


def rate(zookeeper: str, user: str, client: str) -> Rate | None:
    async def read() -> Rate | None:
        rates = ZkMutationRates(load_settings(overrides=[f"zookeeper.connect={zookeeper}"]))
        try:
            return await rates.rate(user, client)
        finally:
            await rates.close()

    return asyncio.run(read())


def put(session, place: str, value: str, key: str = "controller_mutation_rate") -> None:
    path = f"/config/{place}"
    session.ensure_path(path)
    session.set(path, config_bytes({key: value}))


def test_the_nearest_rate_counts(zookeeper, zk_session):
    assert rate(zookeeper, *BOTH) is None
    for number, (place, entity) in reversed([*enumerate(PLACES, 1)]):
        put(zk_session, place, str(number))
        assert rate(zookeeper, *BOTH) == Rate(entity, number)
    assert rate(zookeeper, "other", "c/d") == Rate(("other", "c/d"), 4)
    assert rate(zookeeper, "a b", "other") == Rate(("a b", "other"), 2)
    assert rate(zookeeper, "a b", "") == Rate(USER, 3)
    assert rate(zookeeper, "other", "") == Rate(("other", ""), 6)


def test_other_quotas_limit_nothing_here(zookeeper, zk_session):
    put(zk_session, "clients/<default>", "1000", "producer_byte_rate")
    assert rate(zookeeper, *BOTH) is None
    put(zk_session, "clients/<default>", "2.5")
    assert rate(zookeeper, *BOTH) == Rate(CLIENT, 2.5)


@pytest.mark.parametrize("value", ["Infinity", "NaN"])
def test_what_never_is_reached_limits_nobody(zookeeper, zk_session, value, caplog):
    put(zk_session, "clients/<default>", "2.5")
    put(zk_session, "clients/c%2Fd", value)
    assert rate(zookeeper, *BOTH) is None
    assert rate(zookeeper, "u", "other") == Rate(("", "other"), 2.5)
    assert not caplog.records


@pytest.mark.parametrize("value", ["many", "1_000", ""])
def test_what_is_no_rate_is_told_and_limits_nothing(zookeeper, zk_session, value, caplog):
    put(zk_session, "clients/<default>", value)
    assert rate(zookeeper, *BOTH) is None
    assert f"controller_mutation_rate = {value!r} is no number" in caplog.text
