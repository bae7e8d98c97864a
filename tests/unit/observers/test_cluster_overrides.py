"""What brokers' cluster-wide defaults say: what is broken is passed over alone."""

from __future__ import annotations

from collections import Counter

import pytest

from state.cluster.config import DEPRIORITIZED
from state.topic_overrides import MIN_INSYNC, UNCLEAN
from streaming.observers.overrides import cluster_overrides
from streaming.zk.znodes import config_bytes

KEYS = (UNCLEAN, MIN_INSYNC, DEPRIORITIZED)


def said(config: dict[str, str], *keys: str) -> tuple[dict[str, object], int]:
    """What is said of these keys, and how much of it was broken."""
    counters: Counter[str] = Counter()
    found = cluster_overrides(config_bytes(config), keys or KEYS, counters)
    return found, counters["broken_configs"]


def test_each_value_is_read_as_brokers_do() -> None:
    config = {UNCLEAN: " True", MIN_INSYNC: "+2 ", DEPRIORITIZED: "7, 5,7", "other": "x"}
    assert said(config) == ({UNCLEAN: True, MIN_INSYNC: 2, DEPRIORITIZED: "5,7"}, 0)
    assert said({DEPRIORITIZED: ""}) == ({DEPRIORITIZED: ""}, 0)


@pytest.mark.parametrize("broken", [{MIN_INSYNC: "x"}, {DEPRIORITIZED: "1,x"}])
def test_a_broken_value_hides_no_other(broken: dict[str, str]) -> None:
    whole = {UNCLEAN: "true", MIN_INSYNC: "2", DEPRIORITIZED: "5"}
    wanted = {UNCLEAN: True, MIN_INSYNC: 2, DEPRIORITIZED: "5"}
    found, count = said(whole | broken)
    assert found == {key: value for key, value in wanted.items() if key not in broken}
    assert count == 1


def test_keys_that_are_not_asked_for_are_not_looked_at() -> None:
    assert said({MIN_INSYNC: "2", DEPRIORITIZED: "x"}, MIN_INSYNC) == ({MIN_INSYNC: 2}, 0)


@pytest.mark.parametrize(("data", "count"), [(None, 0), (b"{", 1), (b"[]", 1)])
def test_where_nothing_can_be_read_nothing_is_said(data: bytes | None, count: int) -> None:
    counters: Counter[str] = Counter()
    assert cluster_overrides(data, KEYS, counters) == {}
    assert counters["broken_configs"] == count
