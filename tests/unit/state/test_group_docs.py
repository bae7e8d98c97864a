"""The specifications name every change, column, record, reply and table of consumer groups."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from state.blocks import decode_block
from state.groups.buckets import BUCKETS
from state.groups.config import CONFIG_KEYS, GroupConfig
from state.groups.image_changes import CHANGES
from state.groups.tables import GroupApi
from streaming.front.groups.coordination import coordinator_config
from streaming.settings_loader import load_settings
from tests.unit.state.test_group_format import sample

UNDECIDED = {GroupApi.HEARTBEAT, GroupApi.OFFSET_FETCH, GroupApi.DESCRIBE_GROUPS}
"""The front answers these from what is decided already."""

DOCS = Path(__file__).parents[3] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


@pytest.mark.parametrize("change", [*CHANGES, "group_removed"])
def test_every_change_is_specified(change: str) -> None:
    assert f"\n| `{change}` |" in page("decision-log.md")


def test_every_change_names_the_fields_it_has() -> None:
    for step in sample().steps:
        for change in step["changes"]:
            row = next(
                line
                for line in page("decision-log.md").splitlines()
                if line.startswith(f"| `{change['change']}` |")
            )
            for name in change.keys() - {"change", "at_ms"}:
                assert name in row


@pytest.mark.parametrize("api", [api for api in GroupApi if api not in UNDECIDED])
def test_every_reply_is_specified(api: GroupApi) -> None:
    assert f"`{api}`" in page("decision-log.md")


@pytest.mark.parametrize("key", CONFIG_KEYS)
def test_every_configuration_key_is_specified(key: str) -> None:
    assert f"`{key}`" in page("event-log.md")


def test_every_configuration_key_comes_from_a_setting() -> None:
    assert coordinator_config(load_settings()).keys() == {*CONFIG_KEYS}


@pytest.mark.parametrize("name", [field.name for field in fields(GroupConfig)])
def test_every_configured_value_is_specified(name: str) -> None:
    assert f"`{name}`" in page("state-format.md")


def test_every_column_of_a_bucket_is_specified() -> None:
    data = next(iter(sample().slot.stored.values()))
    columns, extra = decode_block(data[4 : 4 + int.from_bytes(data[:4], "little")])
    text = page("state-format.md")
    assert all(f"`{name}`" in text for name in columns)
    assert all(name in text for name in extra)
    assert f"% {BUCKETS}" in text
