"""States of partitions, as observers put them into events."""

from __future__ import annotations

from state.payloads.partitions import StateValues, states_from_json
from streaming.observers.states import state_tuples
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
