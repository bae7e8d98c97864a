"""What the gateway is told of new topics by the settings."""

from __future__ import annotations

import pytest

from streaming.front.gateway import node_config
from streaming.gateway.apis import NodeConfig
from streaming.settings_loader import load_settings
from tests.unit.gateway.support import FakeCluster, FakeTokens


def configured(*overrides: str) -> NodeConfig:
    settings = load_settings(overrides=overrides, environment={})
    return node_config(settings, FakeTokens(), FakeCluster())


def test_a_secret_is_no_config_to_be_read() -> None:
    node = configured("delegation.token.secret.key=hush")
    assert node.token_terms.secret_key == "hush"
    assert node.secret_configs == {"delegation.token.secret.key"}
    assert "hush" not in str(node.configs)


@pytest.mark.parametrize(
    ("protocol", "have_ids"), [("2.7", False), ("2.8", True), ("2.8-IV1", True), ("3.9", True)]
)
def test_topics_have_ids_from_protocol_2_8_on(protocol: str, have_ids: bool) -> None:
    overrides = [f"inter.broker.protocol.version={protocol}"]
    assert configured(*overrides).defaults.have_ids is have_ids


@pytest.mark.parametrize("enabled", [False, True])
def test_topics_have_remote_storage_where_the_brokers_have_it(enabled: bool) -> None:
    overrides = [f"remote.log.storage.system.enable={str(enabled).lower()}"]
    assert configured(*overrides).defaults.remote_storage is enabled
