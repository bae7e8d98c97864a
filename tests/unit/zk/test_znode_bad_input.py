"""Broken znodes: a row's error for partition states, a ValueError that names it for the others."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.limits import REPLICAS_MAX
from streaming.zk.znodes import (
    ProducerIdBlock,
    parse_broker,
    parse_cluster_id,
    parse_config,
    parse_config_change,
    parse_feature,
    parse_isr_change,
    parse_log_dir_event,
    parse_partition_states,
    parse_producer_id_block,
    parse_topic,
    partition_state_bytes,
    producer_id_block_bytes,
)
from streaming.zk.znodes.plain_states import plain_states

GOOD = b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":3,"isr":[2,5]}'
BROKEN_STATES = [
    b"",
    b"null",
    b"[]",
    b"7",
    b"\xff\xfe",
    GOOD[:-1],
    GOOD + b"\n" + GOOD,
    GOOD.replace(b"leader_epoch", b"leader7_epoch"),
    b"7" + GOOD,
    GOOD.replace(b'"leader":2', b'"leader":"2"'),
    GOOD.replace(b'"leader":2', b'"leader":true'),
    GOOD.replace(b'"leader":2,', b""),
    GOOD.replace(b"[2,5]", b'"25"'),
    GOOD.replace(b"[2,5]", b"[2,null]"),
    GOOD.replace(b"[2,5]", b"{}"),
    GOOD.replace(b'"leader_epoch":3', b'"leader_epoch":99999999999'),
    GOOD.replace(b"[2,5]", b"[-1,2]"),
    GOOD.replace(b"[2,5]", b"[2,2]"),
    GOOD.replace(b"[2,5]", b"[2.0]"),
    GOOD.replace(b"[2,5]", b"%a" % [*range(REPLICAS_MAX + 1)]),
    GOOD.replace(b'"leader":2', b'"leader":2,"leader_recovery_state":2'),
]


@pytest.mark.parametrize("broken", BROKEN_STATES)
def test_a_broken_partition_state_is_an_error_of_its_row_only(broken):
    states = parse_partition_states([GOOD, broken, None, GOOD], [4, 5, -1, 6])
    assert states.present.tolist() == [True, False, False, True]
    assert list(states.errors) == [1]
    assert states.leader.tolist() == [2, -1, -1, 2]
    assert states.zk_version.tolist() == [4, -1, -1, 6]
    assert states.isr.tolist() == [[2, 5], [-1, -1], [-1, -1], [2, 5]]


@pytest.mark.parametrize("broken", BROKEN_STATES)
def test_a_broken_partition_state_is_not_read_with_the_others(broken):
    assert plain_states([GOOD, GOOD.replace(b"2,5", b"7")]) is not None
    assert plain_states([GOOD, broken]) is None


def test_a_state_of_more_brokers_than_there_may_be_costs_the_others_nothing():
    long = GOOD.replace(b"[2,5]", b"[%b]" % b",".join([b"7"] * 200_000))
    tracemalloc.start()
    try:
        states = parse_partition_states([*[GOOD] * 499, long], [1] * 500)
        most_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [*states.errors] == [499]
    assert states.isr.shape == (500, 2)
    assert most_bytes < 50 << 20


NEAR_JSON = st.text(alphabet='0123456789-+.,:[]{}eE \n"', max_size=4).map(str.encode)
"""Values out of which nearly a state can be made again."""


@given(st.integers(0, len(GOOD)), st.integers(0, 3), NEAR_JSON)
def test_a_state_is_read_as_its_json_however_it_is_written(start, size, put):
    nearly = GOOD[:start] + put + GOOD[start + size :]
    as_it_is = parse_partition_states([GOOD, nearly], [1, 2])
    # A blank ahead of it changes nothing but how it looks.
    as_json = parse_partition_states([GOOD, b" " + nearly], [1, 2])
    assert as_it_is.present.tolist() == as_json.present.tolist()
    for name in ("leader", "leader_epoch", "isr", "controller_epoch", "recovery"):
        np.testing.assert_array_equal(getattr(as_it_is, name), getattr(as_json, name))


def test_no_rows_at_all():
    states = parse_partition_states([], np.zeros(0, dtype=np.int32))
    assert len(states.leader) == 0
    assert states.errors == {}


PARSERS = [
    parse_broker,
    parse_cluster_id,
    parse_config,
    parse_config_change,
    parse_feature,
    parse_isr_change,
    parse_log_dir_event,
    parse_producer_id_block,
    parse_topic,
]


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("broken", [b"null", b"[1]", b"{", b"{}", b'"?"', b"\xff"])
def test_other_parsers_say_what_is_wrong(parse, broken):
    with pytest.raises(ValueError, match=r".+"):
        parse(broken)


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b'{"version":2,"entity_path":"users/u/clients/c"}', "users/u/clients/c"),
        (b'{"version":1,"entity_type":"topics","entity_name":"t"}', "topics/t"),
        (b'{"version":1,"entity_type":"clients","entity_name":"c"}', "clients/c"),
        (b'"t"', "topics/t"),
    ],
)
def test_notifications_of_every_age_name_the_entity_that_changed(data, path):
    assert parse_config_change(data) == path


@pytest.mark.parametrize(
    "broken",
    [
        b'"no/name"',
        b'{"version":1,"entity_type":"topics"}',
        b'{"version":2,"entity_path":7}',
    ],
)
def test_a_notification_that_names_no_entity_is_broken(broken):
    with pytest.raises(ValueError, match="broken znode"):
        parse_config_change(broken)


@pytest.mark.parametrize("ends", [(-1, 999), (5, 4), (0, 2**63 - 1), (0, 10**30)])
def test_a_block_that_no_ids_can_follow_is_broken(ends):
    with pytest.raises(ValueError, match="no such block"):
        parse_producer_id_block(producer_id_block_bytes(ProducerIdBlock(1, *ends)))


@given(st.binary(max_size=60))
def test_no_bytes_make_a_parser_raise_anything_else(data):
    assert parse_partition_states([data], [0]).errors.keys() <= {0}
    for parse in PARSERS:
        try:
            parse(data)
        except ValueError:
            continue


INT32 = st.integers(-(2**31), 2**31 - 1)


@given(
    st.lists(
        st.tuples(
            INT32,
            INT32,
            st.lists(st.integers(0, 2**31 - 1), max_size=5, unique=True),
            INT32,
            st.sampled_from([0, 1]),
        ),
        max_size=30,
    )
)
def test_partition_states_round_trip(rows):
    width = max((len(row[2]) for row in rows), default=0)
    isr = np.full((len(rows), width), -1, dtype=np.int32)
    for number, row in enumerate(rows):
        isr[number, : len(row[2])] = row[2]
    leader, leader_epoch, controller_epoch, recovery = (
        np.array([row[i] for row in rows], dtype=np.int32) for i in (0, 1, 3, 4)
    )
    written = partition_state_bytes(leader, leader_epoch, isr, controller_epoch, recovery)
    states = parse_partition_states(written, np.arange(len(rows)))
    assert states.errors == {}
    assert states.present.all()
    np.testing.assert_array_equal(states.leader, leader)
    np.testing.assert_array_equal(states.leader_epoch, leader_epoch)
    np.testing.assert_array_equal(states.controller_epoch, controller_epoch)
    np.testing.assert_array_equal(states.recovery, recovery)
    np.testing.assert_array_equal(states.isr.reshape(isr.shape), isr)
