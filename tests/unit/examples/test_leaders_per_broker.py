"""The example consumer keeps the table that the machines have, through crashes of both sides."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from state.merge import MergedDecision
from state.partitions.legal import PartitionState
from state.partitions.slot import Slot
from state.step import fold, new_machine
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogReader, EmbeddedLogWriter
from tests.fixtures.folding import fold_log
from tests.fixtures.waiting import WAIT_S, wait_for
from tests.logs.state_logs import long_log

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "leaders_per_broker.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("leaders_per_broker", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def log():
    """A history that ends with the role held and a whole load."""
    return long_log(11, plausible=True)


@pytest.fixture(scope="module")
def decisions(log) -> list[MergedDecision]:
    return fold_log(log, 4)[1]


@pytest.fixture(scope="module")
def wanted(log) -> dict[int, int]:
    """What the machine itself has: leaders of the partitions that brokers are told of."""
    slot = new_machine(0)
    assert isinstance(slot, Slot)
    fold(slot, log)
    rows = slot.table.rows
    told = rows.has_state & (rows.state != PartitionState.NON_EXISTENT)
    leaders = rows.leader[told].tolist()
    return {broker: leaders.count(broker) for broker in [*sorted(slot.brokers.by_id), -1]}


def record(one: MergedDecision) -> NewRecord:
    return NewRecord(one.kind, f"{one.offset}:{one.ordinal}", one.body, one.offset)


def test_the_table_is_what_the_machine_has(example, decisions, wanted, tmp_path):
    with EmbeddedLogWriter(tmp_path) as writer:
        writer.append([record(one) for one in decisions])
    leaders = example.Leaders()
    with EmbeddedLogReader(tmp_path) as reader:
        assert example.catch_up(leaders, reader) == len(decisions)
    assert leaders.per_broker() == wanted
    assert sum(wanted.values()) > 0


def test_what_is_in_the_log_twice_counts_once(example, decisions, tmp_path):
    """A writer that died and did not know what it had written."""
    with EmbeddedLogWriter(tmp_path) as writer:
        writer.append([record(one) for one in decisions[:30]])
        writer.append([record(one) for one in decisions[20:]])
    leaders = example.Leaders()
    with EmbeddedLogReader(tmp_path) as reader:
        assert example.catch_up(leaders, reader) == len(decisions)


def fresh_starts(decisions):
    return [
        at
        for at, one in enumerate(decisions)
        if one.kind == "update_brokers" and orjson.loads(one.body)["complete"]
    ]


def test_nothing_is_known_of_a_log_without_its_beginning(example, decisions, wanted, tmp_path):
    """Retention took the fresh start, and a part of what followed."""
    last = fresh_starts(decisions)[-1]
    leaders = example.Leaders()
    with EmbeddedLogWriter(tmp_path, first_offset=5) as writer:
        writer.append([record(one) for one in decisions[last + 1 :]])
        with EmbeddedLogReader(tmp_path) as reader:
            example.catch_up(leaders, reader)
            assert not leaders.known
            assert "not known yet" in example.table_of(leaders).title
            asked = subprocess.run(
                [sys.executable, str(EXAMPLE), str(tmp_path), "--once"],
                capture_output=True,
                text=True,
                check=False,
                timeout=WAIT_S,
            )
            assert (asked.returncode, asked.stdout) == (1, "")
            assert "not known yet" in asked.stderr
            # Everything is told once more.
            later = [replace(one, offset=one.offset + 10_000) for one in decisions]
            writer.append([record(one) for one in later])
            example.catch_up(leaders, reader)
    assert leaders.known
    assert leaders.per_broker() == wanted


def test_a_gap_that_retention_made_is_no_base(example, decisions, wanted, tmp_path):
    leaders = example.Leaders()
    with EmbeddedLogWriter(tmp_path / "before") as writer:
        writer.append([record(one) for one in decisions[:40]])
        with EmbeddedLogReader(tmp_path / "before") as reader:
            example.catch_up(leaders, reader)
    assert leaders.known
    after = max(40, *fresh_starts(decisions)) + 1
    with EmbeddedLogWriter(tmp_path / "after", first_offset=after) as writer:
        writer.append([record(one) for one in decisions[after:]])
    with EmbeddedLogReader(tmp_path / "after") as reader:
        example.catch_up(leaders, reader)
    assert not leaders.known


def test_a_consumer_that_is_killed_goes_on_without_gap_or_repetition(decisions, wanted, tmp_path):
    state = tmp_path / "leaders.json"
    command = [sys.executable, str(EXAMPLE), str(tmp_path / "log"), "--state", str(state)]
    with EmbeddedLogWriter(tmp_path / "log") as writer:
        writer.append([record(one) for one in decisions[:40]])
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
            try:
                wait_for("what the consumer keeps", state.exists)
            finally:
                running.kill()
        kept = orjson.loads(state.read_bytes())
        assert kept["next_offset"] == 40
        # The job died as well and wrote some decisions again.
        writer.append([record(one) for one in decisions[30:]])
    done = subprocess.run(
        [*command, "--once"], capture_output=True, text=True, check=True, timeout=WAIT_S
    )
    assert {int(broker): count for broker, count in orjson.loads(done.stdout).items()} == wanted
