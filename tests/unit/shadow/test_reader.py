"""What our machine is told at a load of a live cluster."""

from __future__ import annotations

from itertools import count
from typing import Any

import orjson
import pytest

from state.event_kinds import EventKind
from streaming.settings_loader import load_settings
from streaming.shadow import reader as module
from streaming.shadow.reader import ClusterReader
from streaming.zk.types import ZNode

ZNODES = {
    "/controller": ZNode(b"{}", 0, 7, 7, 0, 1),
    "/controller_epoch": ZNode(b"3", 2, 1, 1, 0, 0),
}


class EmptyCluster:
    """A session of a cluster with a controller and nothing else."""

    session_timeout_ms = 1_000

    def await_watches(self) -> None:
        """Nothing is told."""

    def add_state_listener(self, listener: object) -> None:
        pass

    def get(self, path: str, watch: object = None) -> ZNode | None:
        return ZNODES.get(path)

    def children(self, path: str, watch: object = None) -> None:
        pass


def test_our_machine_has_no_timers_and_no_brakes_of_its_own() -> None:
    """Kafka's controller has no safety check, and whether it rebalances is seen."""
    given = ["mode=shadow", "controlled.shutdown.safety.check.enable=true"]
    session: Any = EmptyCluster()
    reader = ClusterReader(session, load_settings((), given, {}), lambda: None)
    elected = reader.look().inputs[0]
    assert elected.kind == EventKind.CONTROLLER_ELECTED
    config = orjson.loads(elected.payload)["config"]
    assert config["controlled.shutdown.safety.check.enable"] is False
    assert config["auto.leader.rebalance.enable"] is False


def test_a_look_says_when_it_began_and_when_it_was_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fires after it began may not be in it; what it brings may not have been known before it
    was over.
    """
    monkeypatch.setattr(module, "steady_clock_ms", count(1).__next__)
    session: Any = EmptyCluster()
    reader = ClusterReader(session, load_settings((), ["mode=shadow"], {}), lambda: None)
    for _ in range(2):
        look = reader.look()
        assert look.time_ms < look.over_ms
