"""States of partitions, as observers put them into events."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from state.payloads.partitions import StateValues, states_from_json
from streaming.observers import states
from streaming.observers.states import read_states, state_tuples
from streaming.zk.multiread import Part
from streaming.zk.znodes import parse_partition_states, partition_state_bytes


def test_states_are_written_and_read_in_the_order_of_their_names():
    values = StateValues(
        leader=2, leader_epoch=5, isr=[2, 1], controller_epoch=3, recovery=1, zk_version=9
    )
    data = partition_state_bytes([2], [5], [[2, 1]], 3, [1])[0]
    written = state_tuples(parse_partition_states([data], [9]))
    assert written == [values.as_json()]
    columns = states_from_json(written, 1)
    read = {name: getattr(columns, name).tolist() for name in StateValues._fields}
    assert read == {name: [value] for name, value in values._asdict().items()}
    assert StateValues.of_json(values.as_json()) == values


def test_a_broken_state_is_passed_over_by_its_path_in_whichever_part_it_is_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    znodes = partition_state_bytes([1, 1, 2], [0, 1, 2], [[1], [2], [2]], 3, [0, 0, 0])
    contents = [[znodes[0], None], [b"?", znodes[1]], [znodes[2]]]

    def read(_: object, paths: list[str]) -> list[Part]:
        assert len(paths) == 5
        columns = [SimpleNamespace(data=d, version=np.zeros(len(d), np.int32)) for d in contents]
        return [Part(each, one_state=True) for each in columns]

    monkeypatch.setattr(states, "read_in_parts", read)
    counters = Counter[str]()
    found = read_states(None, [("t", partition) for partition in range(5)], counters)
    assert found == [
        [1, 0, [1], 3, 0, 0],
        None,
        None,
        [1, 1, [2], 3, 0, 0],
        [2, 2, [2], 3, 0, 0],
    ]
    assert counters == {"broken_partition_states": 1}
    assert "/brokers/topics/t/partitions/2/state is passed over" in caplog.text
