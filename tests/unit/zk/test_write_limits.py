"""How much is written at once: what an operator sets, and what holds where nobody does."""

from __future__ import annotations

from streaming.settings_loader import load_settings
from streaming.zk.write_limits import WriteLimits


def test_each_setting_is_a_limit():
    given = [
        "zookeeper.multi.max.operations=7",
        "zookeeper.max.in.flight.requests=3",
        "jute.maxbuffer=70000",
    ]
    limits = WriteLimits.of(load_settings(overrides=given, environment={}))
    assert limits == WriteLimits(max_ops_per_multi=7, jute_maxbuffer=70_000, max_in_flight=3)


def test_the_defaults_are_those_of_the_settings():
    assert WriteLimits.of(load_settings(environment={})) == WriteLimits()
