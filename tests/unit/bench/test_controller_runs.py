"""A run of the controllers' benchmark fails when they differ, and its tables say what it took."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bench.controller import __main__ as bench
from tests.bench.controller.measure import Result
from tests.bench.controller.runs import Runs
from tests.bench.controller.tables import Cases, tables

HELMSTREAM, STOCK = "helmstream", "stock-10"


def result(leader: int = 1, topic: bytes = b"") -> Result:
    return Result({}, np.array([leader]), np.array([[1, 2, -1]]), [topic], None)


def finish_with(monkeypatch: pytest.MonkeyPatch, theirs: Result, *names: str) -> int:
    """Run the benchmark with controllers that leave what is given."""
    found = {HELMSTREAM: result(), STOCK: theirs}

    def one(runs: Runs, name: str, folder: Path, number: int) -> dict[str, Result]:
        runs._emit("ten_fail", name, number, to_last_rpc_s=1.0)
        return {"ten_fail": found[name]}

    monkeypatch.setattr(Runs, "_one", one)
    monkeypatch.setattr(bench, "fetch_local_fs_jar", lambda: None)
    monkeypatch.setattr(sys, "argv", ["bench", "--runs", "2", "--controllers", *names])
    return bench.main()


def test_controllers_that_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    assert finish_with(monkeypatch, result(), HELMSTREAM, STOCK) == 0


@pytest.mark.parametrize("theirs", [result(leader=2), result(topic=b"moved")])
def test_controllers_that_differ(monkeypatch: pytest.MonkeyPatch, theirs: Result) -> None:
    assert finish_with(monkeypatch, theirs, HELMSTREAM, STOCK) == 1


def test_a_controller_alone_has_nothing_to_differ_from(monkeypatch: pytest.MonkeyPatch) -> None:
    assert finish_with(monkeypatch, result(), STOCK) == 0


def line(bench: str, controller: str, number: int, **figures: Any) -> dict[str, Any]:
    about = {"controller": controller, "run": number, "partitions": 10}
    return {"bench": bench, **about, "brokers": 3, "delay_ms": 0.0, "ensemble": False, **figures}


def ran(controller: str, seconds: list[float], **figures: Any) -> list[dict[str, Any]]:
    return [
        line("ten_fail", controller, number, to_last_rpc_s=one, to_last_znode_s=None, **figures)
        for number, one in enumerate(seconds, start=1)
    ]


def test_tables() -> None:
    lines = [
        *ran(HELMSTREAM, [2.0, 1.5, 1.75], all_cpu_s=2.0, front_cpu_s=0.5, front_mb=70.0),
        *ran(STOCK, [17.5, 16.0, 21.0], all_cpu_s=5.0, jvm_cpu_s=4.0, stubs_mb=60.0),
        line("ten_fail_floor", HELMSTREAM, 1, floor_s=1.0, floors=2.0),
        line("ten_fail_differences", STOCK, 1, znodes_differ=1, told_differ=2, told_examples=[]),
    ]
    (_, seconds), (_, work), (_, cpu), (_, memory) = tables(lines)
    ours, theirs = {"case": "ten_fail", "controller": HELMSTREAM}, {"controller": STOCK}
    assert seconds == [
        {
            "case": "ten_fail",
            "until": "last RPC",
            HELMSTREAM: "1.75 (1.50, 2.00)",
            STOCK: "17.5 (16.0, 21.0)",
            f"{STOCK} / {HELMSTREAM}": "10.0",
            "floors": "2.00",
            "differ": 3,
        }
    ]
    assert [row["controller"] for row in work] == [HELMSTREAM, STOCK]
    all_ours = "2.00 (2.00, 2.00)"
    assert cpu[0] == {**ours, "all": all_ours, "ratio": "1.00", "front": "0.50", "jvm": ""}
    assert cpu[1].items() >= {**theirs, "ratio": "2.50", "front": "", "jvm": "4.00"}.items()
    assert memory[1].items() >= {**theirs, "front": "", "stubs": "60.0"}.items()


def test_summaries_have_least_median_and_most() -> None:
    (summary,) = Cases(ran(STOCK, [3.0, 1.0, 1.5])).summaries()
    assert summary["runs"] == 3
    assert summary["to_last_rpc_s"] == [1.0, 1.5, 3.0]
    assert "to_last_znode_s" not in summary
