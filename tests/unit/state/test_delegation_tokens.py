"""Which delegation tokens are deleted."""

from __future__ import annotations

from typing import Any

from state.decisions import DecisionKind
from tests.unit.state.support import Controller

DELETE = DecisionKind.DELETE_DELEGATION_TOKEN


def token(name: str, zk_version: int = 0) -> dict[str, Any]:
    return {
        "token_id": name,
        "owner": "User:alice",
        "expired_at_ms": 900,
        "zk_version": zk_version,
    }


def expire(controller: Controller, *tokens: dict[str, Any]) -> dict[DecisionKind, Any]:
    return controller.happen("delegation_tokens_expired", several=DELETE, tokens=list(tokens))


def test_each_that_has_expired_is_deleted_as_it_was_found() -> None:
    said = expire(Controller(), token("a", 2), token("b"))
    assert said.keys() == {DELETE}
    assert sorted(said[DELETE], key=lambda one: str(one["token_id"])) == [
        {
            "token_id": name,
            "owner": "User:alice",
            "expired_at_ms": 900,
            "expected_version": version,
            "epoch_zk_version": 5,
        }
        for name, version in (("a", 2), ("b", 0))
    ]


def test_only_a_controller_that_has_loaded_deletes_tokens() -> None:
    controller = Controller()
    controller.elect(6)
    assert expire(controller, token("a")) == {}
    controller.happen("resync_completed", topics=0)
    assert DELETE in expire(controller, token("a"))
    controller.happen("controller_resigned", reason="test")
    assert expire(controller, token("a")) == {}


def test_a_pause_is_about_partitions() -> None:
    controller = Controller()
    controller.happen("controller_paused", reason="test")
    controller.elect(6)
    controller.happen("resync_completed", topics=0)
    assert DELETE in expire(controller, token("a"))


def test_one_that_says_nothing_is_set_aside() -> None:
    said = expire(Controller(), {"token_id": "a"})
    assert "owner" in said[DecisionKind.SET_ASIDE]["reason"]
