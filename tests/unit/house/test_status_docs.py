"""docs/status.md names every field, counter and metric there is, and the example's alerts exist."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from state.groups.states import GroupState
from streaming.front.controller_role import RolePhase
from streaming.front.groups.figures import GroupFigures
from streaming.front.metric_families import COUNTERS, families
from tests.unit.front.front_figures import made_front, play_job

COUNTED = re.compile(r'counters\["(\w+)"\] \+=|_Closing\("(\w+)"')
HISTOGRAMS = {"helmstream_batch_duration_seconds", "helmstream_event_to_zookeeper_seconds"}
METRIC = re.compile(r"\b(?:kafka|helmstream)_\w+")
PARTITION_OF_GROUPS = (
    "phase",
    "epoch",
    "end_offset",
    "high_watermark",
    "memory_bytes",
    "not_loaded",
)


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    return (root / "docs" / "status.md").read_text("utf-8")


@pytest.fixture(scope="module")
def status(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The status of a front that has seen a bit of everything."""

    async def scenario() -> dict[str, Any]:
        front, log = made_front(tmp_path_factory.mktemp("front"))
        with log:
            play_job(front)
            return front.status()

    counted = GroupFigures().status()
    groups = {"enabled": True, "groups": 0, "states": {}, "partitions": {}, **counted}
    gateway = {"connections_open": 1, "requests_Metadata": 2, "outdated_tls": 3}
    found = {**asyncio.run(scenario()), "epoch": 1, "groups": groups, "gateway": gateway}
    return {**found, "certificate_ends_ms": 7}


def ticked(text: str) -> set[str]:
    """What stands in backticks."""
    return set(re.findall(r"`([^`\n]+)`", text))


def fields(status: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in status.items():
        if isinstance(value, Mapping) and value:
            yield from fields(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def described(field: str, names: set[str]) -> bool:
    """Whether a field stands in the text; N stands for any number, * for any name."""
    numbered = re.sub(r"\.\d+(?=\.|$)", ".N", field)
    return numbered in names or f"{numbered.rpartition('.')[0]}.*" in names


def test_every_field_of_the_status_is_described(status, text):
    names = ticked(text)
    groups = {f"{name}.*" for name in ("timers", "gateway", "groups.states", "counters")}
    assert groups <= names
    missing = [field for field in fields(status) if not described(field, names)]
    assert set(missing) <= {
        "timers",
        "delivery",
        "gateway",
        "counters",
        "groups.states",
        "groups.partitions",
    }
    of_batch = {"batch_id", "end_offset", "decisions", "conflicts", "fenced", "duration_ms"}
    of_batch |= {"first_event_ms", "written_at_ms", "retain_from", "rejected"}
    assert of_batch | set(PARTITION_OF_GROUPS) | {str(phase) for phase in RolePhase} <= names


def test_every_counter_in_the_code_is_described(root, text):
    counted = {
        name
        for path in (root / "streaming").rglob("*.py")
        for found in COUNTED.findall(path.read_text("utf-8"))
        for name in found
        if name
    }
    assert "set_aside_events" in counted
    assert "closed_idle" in counted
    assert counted <= ticked(text)
    named = {"unsupported_api_versions", "operations_denied", "clients_throttled", "outdated_tls"}
    of_gateway = named | {name for name in counted if name.startswith(("connections_", "closed_"))}
    assert counted - of_gateway == set(COUNTERS)


def exported(status: Mapping[str, Any]) -> set[str]:
    """Names of all samples."""
    found = {
        family.name if family.type == "histogram" else sample.name
        for family in families(status)
        for sample in family.samples
    }
    return found | HISTOGRAMS


def generic(name: str) -> bool:
    """Whether a metric is one of those that the text names by their counter."""
    counter = name.removeprefix("helmstream_").removesuffix("_total")
    return counter in COUNTERS or counter.startswith("gateway_")


def test_every_metric_is_described_and_every_described_one_exists(status, text):
    described_names = {
        name
        for tick in ticked(text)
        for name in METRIC.findall(tick.split("{", maxsplit=1)[0])
        if "<" not in tick
    }
    names = exported(status)
    assert {name for name in names if not generic(name)} <= described_names
    assert described_names <= names
    prefix = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    assert {prefix + state.lower() for state in GroupState} <= names


def test_an_alert_tells_that_no_figure_is_there(root):
    rules = (root / "docs" / "examples" / "prometheus-alerts.yml").read_text("utf-8")
    assert "expr: absent(helmstream_role)\n" in rules


def test_alerts_are_about_metrics_that_exist(root, status):
    rules = (root / "docs" / "examples" / "prometheus-alerts.yml").read_text("utf-8")
    expressions = re.findall(r"^ +expr: (.+)$", rules, re.MULTILINE)
    assert len(expressions) == rules.count("- alert: ")
    used = {name for one in expressions for name in METRIC.findall(one)}
    assert used <= exported(status)
    roles = set(re.findall(r'role="(\w+)"', rules))
    assert roles <= {str(phase) for phase in RolePhase}
