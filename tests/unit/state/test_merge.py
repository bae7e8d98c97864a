"""One sequence of decisions out of what several slots said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from state.blocks import decode_block, encode_block
from state.decisions import Decision, DecisionKind, json_decision
from state.matrix import pad_rows
from state.merge import decision_digest_input, merge, merge_blocks

NO_IDS = {"topic_ids": [None]}


def block(topic: str, partitions: list[int], isr: list[list[int]]) -> bytes:
    columns = {
        "topic": np.zeros(len(partitions), dtype=np.int32),
        "partition": np.array(partitions, dtype=np.int32),
        "isr": pad_rows(isr),
    }
    return encode_block(columns, {"topics": [topic], **NO_IDS})


def test_rows_are_sorted_and_matrices_cut_to_the_widest_list() -> None:
    wide = encode_block(
        {
            "topic": np.zeros(2, dtype=np.int32),
            "partition": np.array([4, 1], dtype=np.int32),
            "isr": np.array([[7, -1, -1, -1], [8, 9, -1, -1]], dtype=np.int32),
        },
        {"topics": ["b"], **NO_IDS},
    )
    merged = merge_blocks([wide, block("a", [2], [[1]])])
    columns, extra = decode_block(merged)
    assert extra["topics"] == ["a", "b"]
    assert columns["topic"].tolist() == [0, 1, 1]
    assert columns["partition"].tolist() == [2, 1, 4]
    assert columns["isr"].tolist() == [[1, -1], [8, 9], [7, -1]]


def _block(**changed: Any) -> bytes:
    lists = {
        "topics": changed.pop("topics", ["a", "b"]),
        "topic_ids": [None, None],
        "reasons": changed.pop("reasons", ["x", "y"]),
    }
    columns = {
        "topic": [0, 0, 1],
        "partition": [0, 1, 0],
        "reason": [0, 1, 0],
        "isr": [[1, 2], [2, -1], [3, -1]],
    }
    arrays = {name: np.array(rows, np.int32) for name, rows in (columns | changed).items()}
    return encode_block(arrays, lists)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"topic": [1, 0, 0]}, id="rows by topic"),
        pytest.param({"partition": [1, 0, 0]}, id="rows by partition"),
        pytest.param({"topics": ["b", "a"]}, id="topics"),
        pytest.param({"reasons": ["y", "x"]}, id="reasons"),
        pytest.param({"isr": [[1, -1], [2, -1], [3, -1]]}, id="too wide"),
    ],
)
def test_a_block_alone_is_put_in_canonical_form(changed: dict[str, Any]) -> None:
    body = _block(**changed)
    empty = encode_block(
        {name: column[:0] for name, column in decode_block(body)[0].items()},
        {"topics": [], "topic_ids": [], "reasons": []},
    )
    merged = merge_blocks([body])
    assert merged == merge_blocks([body, empty]) != body
    assert merge_blocks([merged]) is merged


def test_it_does_not_matter_who_said_what_in_which_order() -> None:
    parts = [block("b", [0], [[1]]), block("a", [1, 0], [[1, 2], [3]]), block("c", [0], [[]])]
    assert merge_blocks(parts) == merge_blocks(parts[::-1])
    assert merge_blocks([merge_blocks(parts[:2]), parts[2]]) == merge_blocks(parts)


def test_kinds_have_their_place_and_equal_objects_count_once() -> None:
    reply = json_decision(7, DecisionKind.REPLY, {"error": 0})
    other = json_decision(7, DecisionKind.REPLY, {"error": 1})
    change = Decision(7, DecisionKind.CHANGE_PARTITIONS, block("a", [0], [[1]]))
    earlier = json_decision(3, DecisionKind.ARM_TIMER, {})
    merged = merge([reply, other, reply, change, earlier])
    assert [(one.offset, one.ordinal, one.kind) for one in merged] == [
        (3, 0, DecisionKind.ARM_TIMER),
        (7, 0, DecisionKind.CHANGE_PARTITIONS),
        (7, 1, DecisionKind.REPLY),
        (7, 2, DecisionKind.REPLY),
    ]


def test_reports_are_added_up() -> None:
    def report(brokers: list[int], preferred: list[int], imbalanced: list[int]) -> Decision:
        columns = {"broker": brokers, "preferred": preferred, "imbalanced": imbalanced}
        arrays = {name: np.array(values, dtype=np.int32) for name, values in columns.items()}
        return Decision(1, DecisionKind.REPORT_IMBALANCE, encode_block(arrays, {}))

    [merged] = merge([report([1, 3], [2, 5], [1, 0]), report([2, 3], [4, 1], [0, 1])])
    columns, _ = decode_block(merged.body)
    assert {name: column.tolist() for name, column in columns.items()} == {
        "broker": [1, 2, 3],
        "preferred": [2, 4, 6],
        "imbalanced": [1, 0, 1],
    }


def test_reasons_are_coded_anew() -> None:
    def refusal(topic: str, reasons: list[str], index: list[int]) -> bytes:
        columns = {
            "topic": np.zeros(len(index), dtype=np.int32),
            "partition": np.arange(len(index), dtype=np.int32),
            "reason": np.array(index, dtype=np.int8),
        }
        return encode_block(columns, {"topics": [topic], "reasons": reasons, **NO_IDS})

    columns, extra = decode_block(
        merge_blocks([refusal("b", ["y"], [0]), refusal("a", ["x", "z"], [1, 0])])
    )
    assert extra["reasons"] == ["x", "y", "z"]
    assert columns["reason"].tolist() == [2, 0, 1]


def test_a_digest_covers_place_kind_and_body() -> None:
    [one] = merge([json_decision(7, DecisionKind.REPLY, {"error": 0})])
    assert decision_digest_input(one) == (
        b'\x0d\x00\x00\x00[7,0,"reply"]\x0b\x00\x00\x00{"error":0}'
    )
