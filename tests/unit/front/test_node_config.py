"""What the gateway is told of new topics by the settings."""

from __future__ import annotations

import pytest

from streaming.front.gateway import node_config
from streaming.settings_loader import load_settings


@pytest.mark.parametrize(
    ("protocol", "have_ids"), [("2.7", False), ("2.8", True), ("2.8-IV1", True), ("3.9", True)]
)
def test_topics_have_ids_from_protocol_2_8_on(protocol: str, have_ids: bool) -> None:
    overrides = [f"inter.broker.protocol.version={protocol}"]
    given = load_settings(overrides=overrides, environment={})
    assert node_config(given).defaults.have_ids is have_ids


@pytest.mark.parametrize("enabled", [False, True])
def test_topics_have_remote_storage_where_the_brokers_have_it(enabled: bool) -> None:
    overrides = [f"remote.log.storage.system.enable={str(enabled).lower()}"]
    given = load_settings(overrides=overrides, environment={})
    assert node_config(given).defaults.remote_storage is enabled
