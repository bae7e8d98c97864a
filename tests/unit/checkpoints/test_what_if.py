"""Settings that decisions depend on, changed in the events that carry them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from checkpoints.what_if import WHAT_IF_KEYS, Setting, in_events, rewritten, under_settings
from state.cluster.config import CONFIG, ClusterConfig
from state.events import Event
from state.groups.config import CONFIG_KEYS
from state.opened_decisions import open_body
from streaming.errors import ConfigurationError
from streaming.replay.settings_in_log import what_if_from
from tests.fixtures.folding import fold_log
from tests.fixtures.unavailable import unavailable_partition

UNCLEAN = "unclean.leader.election.enable"


def event(kind: str, config: object) -> bytes:
    return orjson.dumps({"controller_id": 1, "config": config})


def under(config: dict[str, Setting], log: list[Event]) -> list[Event]:
    return [replace(event, payload=rewritten(event.kind, event.payload, config)) for event in log]


def test_an_election_gets_all_settings_and_a_change_only_what_it_changes():
    config = {UNCLEAN: True, "delete.topic.enable": False}
    elected = orjson.loads(rewritten("controller_elected", event("", {UNCLEAN: False}), config))
    assert elected == {"controller_id": 1, "config": config}
    changed = rewritten("cluster_config_changed", event("", {UNCLEAN: False, "x": 1}), config)
    assert orjson.loads(changed)["config"] == {UNCLEAN: True, "x": 1}


@pytest.mark.parametrize("payload", [b"{", b"[]", b"{}", b'{"config":3}', b'{"config":null}'])
def test_what_cannot_be_read_stays_as_it_is(payload):
    assert rewritten("cluster_config_changed", payload, {UNCLEAN: True}) == payload


def test_other_events_stay_as_they_are():
    payload = event("", {UNCLEAN: False})
    assert rewritten("topic_observed", payload, {UNCLEAN: True}) is payload


def test_every_setting_in_the_log_can_be_changed_under_kafkas_name():
    given = [f"{key}={'true' if kind is bool else '7'}" for key, kind in WHAT_IF_KEYS.items()]
    found = what_if_from(given)
    assert found.keys() == {*CONFIG, *CONFIG_KEYS}
    assert all(type(found[key]) is kind for key, (_, kind) in CONFIG.items())
    assert in_events({"leader.imbalance.check.interval.seconds": 3}) == {
        "leader.imbalance.check.interval.ms": 3_000
    }
    assert in_events({"offsets.retention.minutes": 2}) == {"offsets.retention.ms": 120_000}


def test_each_kind_of_event_gets_the_settings_it_carries():
    config = {UNCLEAN: True, "group.max.size": 3}
    groups = rewritten("group_coordinator_configured", event("", {}), config)
    assert orjson.loads(groups)["config"] == {"group.max.size": 3}
    elected = rewritten("controller_elected", event("", {}), config)
    assert orjson.loads(elected)["config"] == {UNCLEAN: True}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("unclean", "'unclean' is not of the form key=value"),
        ("slots=4", r"slots = '4': no decision of a replay depends on it; allowed are auto\."),
        ("unclean.leader.election=true", r"did you mean unclean\.leader\.election\.enable\?"),
        (f"{UNCLEAN}=maybe", rf"{UNCLEAN} = 'maybe': allowed are true, false"),
        ("leader.imbalance.per.broker.percentage=-1", "'-1': allowed is a whole number"),
        ("min.insync.replicas=3000000000", "'3000000000': allowed is a whole number, 1 to 2147"),
        ("leader.rebalance.partitions.max=0", "'0': allowed is a whole number, 1 to"),
        ("leader.recovery.supported=7", "'7': allowed are true, false"),
    ],
)
def test_what_is_not_allowed_is_refused_with_key_value_and_allowed(given, said):
    with pytest.raises(ConfigurationError, match=said):
        what_if_from([given])


def test_a_partition_gets_its_leader_where_unclean_elections_had_been_allowed():
    """The whole ISR died; broker 2 lives and is assigned, but not in sync."""

    def last_leader(config: dict[str, Setting]) -> tuple[int, str]:
        log = under(config, unavailable_partition())
        changed = [one for one in fold_log(log, 4)[1] if one.kind == "change_partitions"][-1]
        row: Any
        (row,) = open_body(changed.kind, changed.body)
        return row["leader"], row["rule"]

    assert last_leader({}) == (-1, "leader_lost")
    assert last_leader({UNCLEAN: True}) == (2, "unclean_elected")


@pytest.mark.parametrize("key", [*CONFIG, *CONFIG_KEYS])
def test_machines_to_go_on_from_are_as_if_the_log_had_told_the_setting(key):
    """Nothing was decided before that depends on it."""
    told = orjson.dumps({"config": {}})
    *log, _ = unavailable_partition()
    log.append(Event(len(log), 2_000, "group_coordinator_configured", "", told))
    field, kind = CONFIG.get(key, ("", int))
    default = getattr(ClusterConfig(), field, 0)
    config = {key: "7" if kind is str else not default if kind is bool else default + 7}
    wanted, before = fold_log(under(config, log), 4)[0], fold_log(log, 4)[0]
    assert under_settings(before, config) == wanted != before
    assert under_settings(before, {}) == before
