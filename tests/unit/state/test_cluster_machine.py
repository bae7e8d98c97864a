"""What is decided once for the cluster: who is registered, and blocks of producer ids."""

from __future__ import annotations

from typing import Any

import pytest

from state.decisions import DecisionKind
from state.protocol_errors import ProtocolError
from tests.unit.state.support import Controller, broker

WRITE, REPLY = DecisionKind.WRITE_PRODUCER_ID_BLOCK, DecisionKind.REPLY
BROKERS = DecisionKind.UPDATE_BROKERS


def ask(controller: Controller, broker_id: int = 1, broker_epoch: int = 101) -> Any:
    asked = {"request_id": "r", "broker_id": broker_id, "broker_epoch": broker_epoch}
    return controller.happen("producer_ids_requested", **asked)


def test_blocks_follow_each_other_and_what_the_znode_says() -> None:
    controller = Controller()
    first, second = ask(controller), ask(controller)
    assert (first[WRITE]["block_start"], first[WRITE]["block_end"]) == (0, 999)
    assert (first[WRITE]["expected_version"], second[WRITE]["expected_version"]) == (-1, 0)
    assert second[REPLY]["producer_id_start"] == 1000
    controller.happen("producer_id_block_observed", block_end=6999, zk_version=9)
    third = ask(controller)
    assert (third[WRITE]["block_start"], third[WRITE]["expected_version"]) == (7000, 9)


@pytest.mark.parametrize(
    ("sender", "name"),
    [((1, 100), "STALE_BROKER_EPOCH"), ((9, 100), "BROKER_ID_NOT_REGISTERED"), ((1000, 0), "NONE")],
)
def test_which_brokers_get_producer_ids(sender: tuple[int, int], name: str) -> None:
    said = ask(Controller(), *sender)
    assert ProtocolError(said[REPLY]["error"]).name == name
    assert (WRITE in said) == (name == "NONE")


def test_the_brokers_are_told_with_those_that_must_hear_everything() -> None:
    controller = Controller((1, 2))
    said = controller.brokers(
        registered=[broker(3, 103)],
        unregistered=[1],
        bounced=[broker(2, 202)],
    )[BROKERS]
    assert [(one["id"], one["epoch"]) for one in said["brokers"]] == [(2, 202), (3, 103)]
    assert (said["introduced"], said["complete"]) == ([2, 3], False)
    updated = controller.brokers(updated=[broker(3, 103, "rack")])[BROKERS]
    assert (updated["introduced"], updated["brokers"][1]["rack"]) == ([], "rack")


def test_after_a_load_everybody_must_hear_everything() -> None:
    controller = Controller((1,))
    controller.elect(6)
    assert BROKERS not in controller.brokers(registered=[broker(1, 101)])
    said = controller.happen("resync_completed", topics=0)[BROKERS]
    assert (said["introduced"], said["complete"], said["controller_epoch"]) == ([1], True, 6)
