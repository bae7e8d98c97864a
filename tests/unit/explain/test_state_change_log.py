"""Decisions as lines of a broker's state-change.log, through the command."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import orjson
import pytest

from state.blocks import encode_block
from state.partitions.legal import PartitionState, ReplicaState
from streaming.cli import main
from streaming.explain import state_change_log
from streaming.explain.state_change_log import StateChangeLog
from streaming.log.api import LogRecord
from tests.unit.explain.recording import Recording

EPOCH = "[Controller id=1000 epoch=1]"
NOON_MS = 1_700_000_000_042  # 2023-11-14 22:13:20.042 UTC


@pytest.fixture
def _kathmandu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A time zone of hours and minutes."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def printed(recording: Recording, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    """Return the lines of all decisions."""
    capsys.readouterr()
    root = str(recording.folders.root)
    with pytest.raises(SystemExit) as left:
        main(["tap", "--state-changes", "--no-follow", "--data-dir", root, *options])
    assert left.value.code == 0
    return capsys.readouterr().out.splitlines()


def tapped(
    recording: Recording, capsys: pytest.CaptureFixture[str], *options: str
) -> list[tuple[str, str]]:
    """Return level and text of each line about the first partition of my-topic."""
    recording.decide()
    found = []
    for line in printed(recording, capsys, *options):
        head, text = line.split(f" {EPOCH} ")
        text, logger = text.rsplit(" ", 1)
        assert logger == "(state.change.logger)"
        if "my-topic-0" in text:
            found.append((head.split("] ")[1], text))
    return found


def elected(from_: str, leader: int, isr: list[int], epoch: int) -> tuple[str, str]:
    states = ", ".join(f"BrokerState(brokerId={one}, brokerEpoch=-1)" for one in isr)
    return (
        "INFO",
        f"Changed partition my-topic-0 from {from_} to OnlinePartition with state"
        f" LeaderAndIsr(leader={leader}, leaderEpoch={epoch}, isrWithBrokerEpoch=List({states}),"
        f" leaderRecoveryState=RECOVERED, partitionEpoch={epoch})",
    )


def moved(from_: str, to: str) -> tuple[str, str]:
    return "TRACE", f"Changed partition my-topic-0 state from {from_} to {to}"


CREATED = [
    (
        "INFO",
        "Changed partition my-topic-0 state from NonExistentPartition to NewPartition"
        " with assigned replicas 1,2,3",
    ),
    elected("NewPartition", 1, [1, 2, 3], 0),
]


def test_elections_say_in_which_state_they_were(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    recording.story.unregister(1)
    recording.story.register({1: 11}, add=200)
    recording.story.alter("my-topic", 0, [2, 3, 1], leader_epoch=1, partition_epoch=1)
    recording.story.elect_preferred("my-topic", [0])
    recording.story.shut_down(1, epoch=201)
    said = tapped(recording, capsys)
    assert said[:2] == CREATED
    assert said[2] == elected("OfflinePartition", 2, [2, 3], 1)
    (preferred, left) = said[3:]
    assert preferred[1].startswith(
        "Changed partition my-topic-0 from OnlinePartition to OnlinePartition with state"
        " LeaderAndIsr(leader=1, leaderEpoch=2,"
    )
    assert "from OnlinePartition to OnlinePartition with state LeaderAndIsr(leader=2" in left[1]


def test_a_partition_loses_its_leader_and_gets_another(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    recording.story.unregister(1, 2, 3)
    recording.story.register({1: 11, 2: 12, 3: 13}, add=200)
    said = tapped(recording, capsys)
    assert said[2:] == [
        moved("OnlinePartition", "OfflinePartition"),
        (
            "ERROR",
            "Controller 1000 epoch 1 failed to change state for partition my-topic-0"
            " from OfflinePartition to OnlinePartition: no_candidate",
        ),
        elected("OfflinePartition", 3, [3], 2),
    ]


def test_a_topic_is_deleted(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    recording.story.observe("my-topic", [[1, 2, 3]])
    recording.story.write("topic_deletion_requested", "my-topic", topic="my-topic")
    assert tapped(recording, capsys)[2:] == [
        moved("OnlinePartition", "OfflinePartition"),
        moved("OfflinePartition", "NonExistentPartition"),
    ]


def test_it_goes_on_where_it_is_told_to(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    everything = tapped(recording, capsys)
    assert everything == CREATED
    assert tapped(recording, capsys, "--from", "end") == []


@pytest.mark.usefixtures("_kathmandu")
@pytest.mark.parametrize(
    ("replica", "states", "said"),
    [
        (
            -1,
            PartitionState,
            "failed to change state for partition t-7 from OfflinePartition to OnlinePartition:"
            " no_candidate",
        ),
        (
            4,
            ReplicaState,
            "initiated state change of replica 4 for partition t-7 from OfflineReplica to"
            " OnlineReplica failed: no_candidate",
        ),
    ],
)
def test_what_was_refused_is_an_error_with_the_reason(
    replica: int, states: type[PartitionState] | type[ReplicaState], said: str
) -> None:
    columns = {
        "topic": np.array([0], "<i4"),
        "partition": np.array([7], "<i4"),
        "replica": np.array([replica], "<i4"),
        "current": np.array([states.OFFLINE], "|i1"),
        "target": np.array([states.ONLINE], "|i1"),
        "reason": np.array([0], "|i1"),
    }
    header = {"topics": ["t"], "topic_ids": [None], "reasons": ["no_candidate"]}
    log = StateChangeLog(3)
    brokers = orjson.dumps({"controller_id": 1001, "controller_epoch": 9, "brokers": []})
    assert list(log.lines(LogRecord(0, NOON_MS, "update_brokers", "1:0", brokers))) == []
    refused = LogRecord(1, NOON_MS, "refuse_transition", "1:1", encode_block(columns, header))
    assert list(log.lines(refused)) == [
        "[2023-11-15 03:58:20,042] ERROR [Controller id=1001 epoch=9]"
        f" Controller 1001 epoch 9 {said} (state.change.logger)"
    ]


def test_what_cannot_be_opened_is_said_and_passed_over(
    recording: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    recording.decide()
    recording.decided_as_it_is("change_partitions", b"HB\2" + bytes(9))
    last = printed(recording, capsys)[-1]
    assert "] WARN [Controller id=1000 epoch=1] change_partitions 99:0: " in last


def test_every_state_has_a_name() -> None:
    for states, names in (
        (PartitionState, state_change_log._PARTITION_STATES),
        (ReplicaState, state_change_log._REPLICA_STATES),
    ):
        assert [one.name.lower() for one in states] == list(names)


@pytest.mark.parametrize("other", ["--events", "--outcomes"])
def test_the_lines_are_those_of_decisions(capsys: pytest.CaptureFixture[str], other: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["tap", "--state-changes", other])
    assert left.value.code == 2
    assert "--state-changes shows decisions" in capsys.readouterr().err
