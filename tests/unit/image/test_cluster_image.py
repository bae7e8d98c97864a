"""The image: rows in, rows out, by topic and partition, through a snapshot."""

from __future__ import annotations

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.blocks import encode_block
from state.decisions import Action, DecisionKind
from state.errors import CorruptBlock
from streaming.image.cluster_image import ClusterImage
from streaming.image.partition_columns import PARTITION_COLUMNS
from streaming.wire.endpoints import Endpoint, SecurityProtocol
from streaming.wire.partition_rows import BrokerNode

ID = "xVg7K6qyTvmxpuD7RnqU_w"
OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def block(*rows, width=3):
    """Columns of rows (topic number, partition, leader, replicas); epochs tell rows apart."""
    replicas = [list(ids) + [-1] * (width - len(ids)) for *_, ids in rows]
    matrix = np.array(replicas, dtype=np.int32).reshape(len(rows), width)
    scalars = {
        name: np.array([row[2] for row in rows], dtype=np.int32)
        for name in ("leader", "leader_epoch", "partition_epoch", "controller_epoch")
    }
    return {
        "topic": np.array([row[0] for row in rows], dtype=np.int32),
        "partition": np.array([row[1] for row in rows], dtype=np.int32),
        **scalars,
        "recovery": np.zeros(len(rows), dtype=np.int8),
        "isr": matrix,
        "replicas": matrix,
        **{name: matrix == 3 for name in ("offline", "adding", "removing")},
    }


def content(image):
    """{(topic, partition): (leader, replicas, offline)} of all rows, in their order."""
    index, names = image.topic_of_rows() if len(image) else ([], [])
    found = {}
    for row, topic in enumerate(index):
        ids = image.columns["replicas"][row]
        found[names[topic], int(image.columns["partition"][row])] = (
            int(image.columns["leader"][row]),
            ids[ids >= 0].tolist(),
            ids[image.columns["offline"][row]].tolist(),
        )
    return found


def test_rows_are_inserted_in_order_and_replaced_in_place():
    image = ClusterImage()
    image.upsert(block((0, 5, 1, [1]), (1, 0, 2, [2])), ["b", "a"], [None, ID])
    image.upsert(block((0, 7, 3, [3, 1]), (0, 5, 9, [1, 2]), (0, 1, 4, [4])), ["b"], [None])
    assert content(image) == {
        ("b", 1): (4, [4], []),
        ("b", 5): (9, [1, 2], []),
        ("b", 7): (3, [3, 1], [3]),
        ("a", 0): (2, [2], []),
    }
    assert list(content(image)) == [("b", 1), ("b", 5), ("b", 7), ("a", 0)]
    assert image.rows_of("b") == slice(0, 3)
    assert image.rows_of("a") == slice(3, 4)
    assert image.rows_of("c") == slice(0, 0)
    assert len(image) == 4
    assert image.topic_names() == ["a", "b"]
    assert (image.topic_name(ID), image.topic_name(OTHER_ID)) == ("a", None)


def test_columns_get_as_wide_as_the_widest_list():
    image = ClusterImage()
    image.upsert(block((0, 0, 1, [1]), width=1), ["t"], [None])
    image.upsert(block((0, 1, 2, [1, 2, 3, 4]), width=4), ["t"], [None])
    image.upsert(block((0, 0, 7, [2, 1]), width=2), ["t"], [None])
    assert content(image) == {("t", 0): (7, [2, 1], []), ("t", 1): (2, [1, 2, 3, 4], [3])}
    assert image.columns["replicas"].shape == (2, 4)


def test_no_rows_change_nothing():
    image = ClusterImage()
    image.upsert(block(), [], [])
    assert (len(image), image.version) == (0, 0)
    image.forget_topics(["nobody"])
    image.forget_partition("nobody", 0)
    assert image.version == 0


def test_a_topic_made_anew_with_another_id_is_another_topic():
    image = ClusterImage()
    image.upsert(block((0, 0, 1, [1]), (0, 1, 1, [1]), (1, 0, 5, [5])), ["t", "u"], [ID, None])
    image.forget_topics(["t"])
    assert image.topic_name(ID) is None
    assert content(image) == {("u", 0): (5, [5], [])}
    image.upsert(block((0, 0, 2, [2])), ["t"], [OTHER_ID])
    assert image.topic_name(OTHER_ID) == "t"
    assert image.topic_ids == {"u": None, "t": OTHER_ID}
    assert content(image) == {("u", 0): (5, [5], []), ("t", 0): (2, [2], [])}


def test_an_id_that_changes_without_a_removal_is_known_by_the_new_one_only():
    image = ClusterImage()
    image.upsert(block((0, 0, 1, [1])), ["t"], [ID])
    image.upsert(block((0, 0, 1, [1])), ["t"], [OTHER_ID])
    assert (image.topic_name(OTHER_ID), image.topic_name(ID)) == ("t", None)


def test_names_of_topics_that_went_are_not_kept():
    """Topics come and go for as long as there is no election."""
    image = ClusterImage()
    image.upsert(block((0, 0, 1, [1]), (1, 4, 2, [2])), ["kept", "last"], [ID, None])
    for number in range(100):
        image.upsert(block((0, 0, 1, [1]), (0, 1, 1, [1])), [f"t{number}"], [None])
        image.forget_topics([f"t{number}"])
    assert len(image._names) <= 6
    image.upsert(block((0, 3, 7, [3])), ["last"], [None])
    assert content(image) == {
        ("kept", 0): (1, [1], []),
        ("last", 3): (7, [3], [3]),
        ("last", 4): (2, [2], []),
    }
    image.forget_topics(["kept", "nobody", "last"])
    assert (image.topic_names(), len(image), image._names) == ([], 0, [])


def test_topics_that_go_in_one_decision_cost_one_copy_of_the_others(monkeypatch):
    image = ClusterImage()
    names = [f"t{number}" for number in range(20)]
    image.upsert(block(*((number, 0, 1, [1]) for number in range(20))), names, [None] * 20)
    copies = []
    monkeypatch.setattr(image, "_keep", lambda kept: copies.append(int(kept.sum())))
    image.forget_topics(names[:9])
    assert copies == [11]


def test_a_partition_is_found_by_its_number():
    image = ClusterImage()
    assert (image.row_of("t", 0), image.partitions_at_least("t")) == (None, 0)
    rows = [(0, 1, 1, [1]), (0, 3, 2, [2]), (1, 0, 5, [5])]
    image.upsert(block(*rows), ["t", "u"], [None, None])
    assert [image.row_of("t", number) for number in range(5)] == [None, 0, None, 1, None]
    assert [image.row_of("u", number) for number in range(2)] == [2, None]
    assert [image.partitions_at_least(name) for name in ("t", "u", "v")] == [4, 1, 0]


def test_one_partition_is_forgotten():
    image = ClusterImage()
    image.upsert(block((0, 0, 1, [1]), (0, 1, 2, [2])), ["t"], [None])
    image.forget_partition("t", 0)
    assert content(image) == {("t", 1): (2, [2], [])}
    assert image.topic_names() == ["t"]


ENDS = [{"listener": "L", "host": "h", "port": 9, "security_protocol": 3}]


def brokers_body(*ids, complete=False, ends=ENDS):
    return {
        "brokers": [{"id": id_, "epoch": 50 + id_, "rack": "r", "endpoints": ENDS} for id_ in ids],
        "introduced": [],
        "complete": complete,
        "controller_id": 1000,
        "controller_endpoints": ends,
        "controller_epoch": 4,
        "epoch_zk_version": 5,
    }


def test_brokers_are_replaced_as_a_whole_and_a_complete_update_starts_anew():
    image = ClusterImage()
    image.upsert(block((0, 0, 1, [1])), ["t"], [ID])
    image.apply(DecisionKind.UPDATE_BROKERS, orjson.dumps(brokers_body(1, 2)))
    sasl_ssl = SecurityProtocol.SASL_SSL
    end = Endpoint(listener="L", host="h", port=9, security_protocol=sasl_ssl)
    node = BrokerNode(1, "r", (end,))
    assert image.brokers.keys() == {1, 2}
    assert (image.brokers[1].node, image.brokers[1].epoch) == (node, 51)
    assert image.controller_node == BrokerNode(1000, "r", node.endpoints)
    assert (image.controller_id, image.controller_epoch, image.epoch_zk_version) == (1000, 4, 5)
    assert len(image) == 1
    image.apply(DecisionKind.UPDATE_BROKERS, orjson.dumps(brokers_body(2, complete=True, ends=[])))
    assert image.brokers.keys() == {2}
    assert image.controller_node is None
    assert (len(image), image.topic_names(), image.topic_name(ID)) == (0, [], None)
    image.upsert(block((0, 0, 1, [1])), ["u"], [None])
    assert content(image) == {("u", 0): (1, [1], [])}


def test_a_topic_that_is_observed_again_stays_as_it_was_until_then():
    image = ClusterImage()
    image.upsert(block((0, 0, 1, [1]), (0, 1, 2, [2])), ["t"], [None])
    again = orjson.dumps({"topic": "t", "observed_again": True})
    image.apply(DecisionKind.FORGET_TOPIC, again)
    assert len(image) == 2
    image = ClusterImage.from_snapshot(image.snapshot())
    assert len(image) == 2
    image.upsert(block((0, 0, 3, [3, 1])), ["t"], [ID])
    assert content(image) == {("t", 0): (3, [3, 1], [3])}
    assert image.topic_name(ID) == "t"
    image.apply(DecisionKind.FORGET_TOPIC, again)
    image.apply(DecisionKind.FORGET_TOPIC, orjson.dumps({"topic": "t"}))
    assert image.topic_names() == []
    image.upsert(block((0, 0, 1, [1])), ["t"], [None])
    image.upsert(block((0, 1, 1, [1])), ["t"], [None])
    assert len(image) == 2, "nothing is outdated any more"


def test_it_tells_once_that_a_topic_ceased_to_exist():
    def change(topic, *rows, action=0):
        columns = block(*rows)
        columns["actions"] = np.full(len(rows), action, dtype=np.int32)
        return encode_block(columns, {"topics": [topic], "topic_ids": [ID]})

    def forgotten(topic, **more):
        return image.apply(DecisionKind.FORGET_TOPIC, orjson.dumps({"topic": topic, **more}))

    image = ClusterImage()
    for topic in ("t", "by hand"):
        body = change(topic, (0, 0, 1, [1]))
        assert not image.apply(DecisionKind.CHANGE_PARTITIONS, body)
    assert not forgotten("t", observed_again=True)
    body = change("t", (0, 0, 1, [1]), action=Action.DELETED)
    assert list(image.apply(DecisionKind.CHANGE_PARTITIONS, body)) == ["t"]
    assert not forgotten("t")
    assert list(forgotten("by hand")) == ["by hand"]
    assert not image.topic_names() and not image.deleting


def test_many_rows_are_replaced_part_by_part():
    rows = 25_000
    first, second = (
        block(*((number % 2, number // 2, leader, [leader]) for number in range(rows)))
        for leader in (1, 2)
    )
    for columns in (first, second):
        columns["actions"] = np.zeros(rows, dtype=np.int32)
    bodies = [
        encode_block(one, {"topics": ["a", "b"], "topic_ids": [ID, None]})
        for one in (first, second)
    ]
    whole, by_parts = ClusterImage(), ClusterImage()
    for body in bodies:
        whole.apply(DecisionKind.CHANGE_PARTITIONS, body)
    by_parts.apply(DecisionKind.CHANGE_PARTITIONS, bodies[0])
    replaced = [
        np.count_nonzero(by_parts.columns["leader"] == 2)
        for _ in by_parts.apply_in_parts(DecisionKind.CHANGE_PARTITIONS, bodies[1])
    ]
    assert replaced == [10_000, 20_000, 25_000, 25_000]
    assert by_parts.snapshot() == whole.snapshot()


def test_kinds_that_change_nothing_visible_are_passed_over():
    image = ClusterImage()
    for kind in DecisionKind:
        if kind not in (
            DecisionKind.UPDATE_BROKERS,
            DecisionKind.CHANGE_PARTITIONS,
            DecisionKind.FORGET_TOPIC,
        ):
            image.apply(kind, b"not even looked at")
    assert image.version == 0


TOPICS = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            TOPICS,
            st.lists(
                st.tuples(
                    st.integers(0, 5),
                    st.integers(0, 9),
                    st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True),
                ),
                min_size=1,
                max_size=4,
                unique_by=lambda row: row[0],
            ),
        ),
        st.tuples(st.just("forget"), TOPICS, st.just(())),
        st.tuples(st.just("snapshot"), st.just(""), st.just(())),
    ),
    max_size=25,
)


@given(steps=STEPS)
def test_any_steps_leave_what_a_dictionary_would_hold(steps):
    image, model = ClusterImage(), {}
    image.update_brokers(brokers_body(1, 2))
    for step, topic, rows in steps:
        if step == "put":
            width = max(len(ids) for *_, ids in rows)
            image.upsert(block(*((0, *row) for row in rows), width=width), [topic], [ID + topic])
            for partition, leader, ids in rows:
                model[topic, partition] = (leader, ids, [3] if 3 in ids else [])
        elif step == "forget":
            image.forget_topics([topic])
            model = {at: row for at, row in model.items() if at[0] != topic}
        else:
            image = ClusterImage.from_snapshot(image.snapshot())
        assert content(image) == model
        assert (np.diff(image.keys) > 0).all()
        assert all(len(image.columns[name]) == len(model) for name in image.columns)
    assert image.brokers.keys() == {1, 2}


def test_a_snapshot_holds_everything():
    image = ClusterImage()
    image.update_brokers(brokers_body(3))
    image.upsert(block((0, 0, 1, [1]), (1, 4, 2, [2])), ["t", "u"], [ID, None])
    again = ClusterImage.from_snapshot(image.snapshot())
    assert content(again) == content(image)
    for name in PARTITION_COLUMNS:
        assert (again.columns[name] == image.columns[name]).all()
    assert (again.brokers, again.controller_node) == (image.brokers, image.controller_node)
    assert (again.controller_epoch, again.epoch_zk_version) == (4, 5)
    assert (again.topic_ids, again.topic_name(ID)) == (image.topic_ids, "t")
    again.upsert(block((0, 0, 7, [1])), ["t"], [ID])
    assert content(again)["t", 0] == (7, [1], [])
    empty = ClusterImage.from_snapshot(ClusterImage().snapshot())
    assert (len(empty), empty.brokers, empty.controller_node) == (0, {}, None)


@pytest.mark.parametrize("data", [b"", b"HB\x01\xff\xff\xff\xff", b"nonsense"])
def test_what_is_no_snapshot_is_refused(data):
    with pytest.raises(CorruptBlock):
        ClusterImage.from_snapshot(data)
