"""One case: do something, wait until all of its consequences are there, say what it took."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from streaming.zk.znodes import parse_partition_states
from tests.bench.controller.stage import Stage
from tests.bench.controller.systems import System
from tests.bench.load import PARTITIONS_PER_TOPIC
from tests.bench.processes import cpu_s, high_water_mb

TIMEOUT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Result:
    """Figures of one case, and what two controllers must agree on.

    leader int[n], isr int[n, 3] padded with -1: the states' znodes afterwards. assigned: digests of
    the topics' znodes. told: a file (tests.bench.told), None where there are too many partitions to
    keep that.
    """

    figures: dict[str, Any]
    leader: NDArray[np.int32]
    isr: NDArray[np.int32]
    assigned: list[bytes]
    told: Path | None


def measured(
    stage: Stage,
    system: System,
    case: str,
    trigger: Callable[[], int],
    done: Callable[[], bool],
) -> Result:
    """Run a case; `trigger` returns the wall clock (ns) from which on it is timed."""
    before_ns = time.time_ns()
    versions = stage.states().version
    cpu_before = _cpu(stage, system)
    since_ns = trigger()
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        stage.wait_for_silence(system.silence_s, deadline - time.monotonic())
        if system.settled() and done():
            break
    cpu = {name: value - cpu_before.get(name, 0.0) for name, value in _cpu(stage, system).items()}
    states = stage.states()
    changed = states.version != versions
    summary = stage.summary(before_ns)
    memory = high_water_mb(system.processes())
    beside = high_water_mb(stage.processes())
    znode_s = (float(states.mtime_ms[changed].max()) / 1e3 if changed.any() else 0) - since_ns / 1e9
    figures = {
        "to_last_znode_s": znode_s if changed.any() else None,
        "to_last_rpc_s": (summary["last_ns"] - since_ns) / 1e9,
        "znodes": int(changed.sum()),
        "folders": _folders(versions < 0, states.version < 0),
        "znodes_per_s": float(changed.sum()) / znode_s if changed.any() else None,
        "rpc_mb": summary["bytes"] / 1e6,
        "requests": summary["requests"],
        **cpu,
        **memory,
        "memory_mb": sum(memory.values()),
        **beside,
    }
    read = parse_partition_states(states.data, states.version.tolist())
    told = _told(stage, case, before_ns)
    return Result(figures, read.leader, read.isr, _assigned(stage), told)


def _folders(missing_before: NDArray[np.bool_], missing: NDArray[np.bool_]) -> int:
    """Return how many znodes above the states had to be created: one for each of them, and one for
    each topic.
    """
    created = np.flatnonzero(missing_before & ~missing)
    return len(created) + len(np.unique(created // PARTITIONS_PER_TOPIC))


def _assigned(stage: Stage) -> list[bytes]:
    return [hashlib.sha256(one or b"").digest() for one in stage.topics().data]


def _cpu(stage: Stage, system: System) -> dict[str, float]:
    """Return CPU seconds by kind; `all` is of the controller and of ZooKeeper, which works for it,
    without what stands for brokers or measures.
    """
    found, beside = cpu_s(system.processes()), cpu_s(stage.processes())
    all_cpu_s = sum(found.values()) + beside["zookeeper_cpu_s"]
    return {**found, **beside, "all_cpu_s": all_cpu_s}


def _told(stage: Stage, case: str, since_ns: int) -> Path | None:
    if not stage.keeps_told:
        return None
    path = stage.folder / f"told-{case}.json"
    stage.stubs.ask("told", since_ns=since_ns, path=str(path))
    stage.stubs.ask("forget")
    return path


def differences(mine: Result, theirs: Result) -> dict[str, Any]:
    """Compare what two controllers made of the same case: znodes, and what brokers were told."""
    found: dict[str, Any] = {
        "znodes_differ": int(
            ((mine.leader != theirs.leader) | (mine.isr != theirs.isr).any(axis=1)).sum()
        ),
        "topics_differ": sum(
            one != other for one, other in zip(mine.assigned, theirs.assigned, strict=True)
        ),
    }
    if mine.told is not None and theirs.told is not None:
        found |= _told_differences(mine.told, theirs.told)
    return found


def _told_differences(mine: Path, theirs: Path) -> dict[str, Any]:
    ours, stock = orjson.loads(mine.read_bytes()), orjson.loads(theirs.read_bytes())
    count, examples, seen = 0, [], {}
    for broker_id in sorted(ours["brokers"].keys() | stock["brokers"].keys(), key=int):
        if broker_id == "0":
            continue
        one, other = ours["brokers"].get(broker_id, {}), stock["brokers"].get(broker_id, {})
        for api in sorted(one.keys() | other.keys()):
            pair = (one.get(api), other.get(api))
            if pair not in seen:
                seen[pair] = _differing(
                    ours["told"].get(pair[0], {}), stock["told"].get(pair[1], {})
                )
            count += len(seen[pair])
            if seen[pair]:
                examples.append([broker_id, api, seen[pair][0]])
    return {"told_differ": count, "told_examples": examples[:3]}


def _differing(mine: dict[str, Any], theirs: dict[str, Any]) -> list[list[Any]]:
    names = sorted(mine.keys() | theirs.keys())
    return [
        [name, mine.get(name), theirs.get(name)]
        for name in names
        if mine.get(name) != theirs.get(name)
    ]
