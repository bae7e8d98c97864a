"""The specifications name every kind, column, action, rule and reason."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from state.change_columns import CHANGE_COLUMNS, ChangeColumn
from state.cluster.authority import Authority
from state.cluster.config import CONFIG, ClusterConfig
from state.decisions import KIND_ORDER, Action, DecisionKind, Rule
from state.event_kinds import EventKind
from state.partitions.refusals import RefusalReason
from state.partitions.table import COLUMN_NAMES
from state.reply_bodies import ControllerApi

DOCS = Path(__file__).parents[3] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


@pytest.mark.parametrize("kind", EventKind)
def test_every_event_kind_is_specified(kind: EventKind) -> None:
    assert f"\n| `{kind}` |" in page("event-log.md")


@pytest.mark.parametrize("key", CONFIG)
def test_every_configuration_key_is_specified(key: str) -> None:
    assert f"`{key}`" in page("event-log.md")


@pytest.mark.parametrize("kind", DecisionKind)
def test_every_decision_kind_is_specified_with_its_step(kind: DecisionKind) -> None:
    row = next(line for line in page("decision-log.md").splitlines() if f"| `{kind}` |" in line)
    assert row.split("|")[3].strip() == str(KIND_ORDER[kind])


@pytest.mark.parametrize("api", ControllerApi)
def test_every_reply_is_specified(api: ControllerApi) -> None:
    assert f"\n  - `{api}`: " in page("decision-log.md")


def test_every_action_rule_and_reason_is_specified() -> None:
    text = " ".join(page("decision-log.md").split())
    for action in Action:
        assert f"| {int(action)} | {action.name}" in text
    for rule in Rule:
        name = rule.name.lower().replace("_", " ")
        assert f"{int(rule)} {name}" in text.replace("ISR", "isr")
    for reason in RefusalReason:
        assert f"`{reason}`" in text


@pytest.mark.parametrize("column", CHANGE_COLUMNS, ids=lambda column: column.name)
def test_every_column_of_a_change_is_specified(column: ChangeColumn) -> None:
    dtype = column.dtype.replace("|", r"\|")
    shape = " matrix" if column.lists else ""
    row = f"\n| `{column.name}` | `{dtype}`{shape} | {column.meaning} |\n"
    assert row in page("decision-log.md")


@pytest.mark.parametrize("column", COLUMN_NAMES)
def test_every_column_of_a_slot_is_specified(column: str) -> None:
    assert f"`{column}`" in page("state-format.md")


@pytest.mark.parametrize(
    "field", [field.name for of in (Authority, ClusterConfig) for field in fields(of)]
)
def test_every_field_of_the_authority_and_the_configuration_is_specified(field: str) -> None:
    assert f"`{field}`" in page("state-format.md")
