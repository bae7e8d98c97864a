"""What differs between two decision sequences is found, and nothing else."""

from __future__ import annotations

from checkpoints.compare import compare
from state.decisions import Decision, DecisionKind, json_decision
from state.merge import MergedDecision, merge
from tests.fixtures.folding import fold_log
from tests.logs.state_logs import long_log


def of(*decisions: Decision) -> list[MergedDecision]:
    return merge(decisions)


def timer(offset: int, name: str, deadline_ms: int) -> Decision:
    body = {"timer": name, "deadline_ms": deadline_ms}
    return json_decision(offset, DecisionKind.ARM_TIMER, body)


def test_equal_logs_do_not_differ():
    decisions = fold_log(long_log(5), 4)[1]
    assert decisions
    assert list(compare(decisions, decisions)) == []
    assert list(compare([], [])) == []


def test_both_values_of_a_field_are_found():
    (found,) = compare(of(timer(3, "a", 1)), of(timer(3, "a", 2)))
    assert (found.offset, found.kind, found.subject) == (3, "arm_timer", "a")
    assert found.fields() == ["deadline_ms"]
    assert (found.left, found.right) == (
        {"timer": "a", "deadline_ms": 1},
        {"timer": "a", "deadline_ms": 2},
    )


def test_a_decision_more_is_one_difference_although_it_moves_the_others():
    left = of(timer(3, "b", 1), timer(9, "z", 1))
    right = of(timer(3, "a", 1), timer(3, "b", 1), timer(9, "z", 1))
    (found,) = compare(left, right)
    assert (found.subject, found.left) == ("a", None)
    (back,) = compare(right, left)
    assert (back.subject, back.right) == ("a", None)


def test_groups_are_named_and_compared_with_themselves():
    def group(name: str) -> Decision:
        body = {"group": name, "partition": 3, "steps": [{"changes": [], "epoch": 2}]}
        return json_decision(5, DecisionKind.CHANGE_GROUP, body)

    (found,) = compare(of(group("b"), group("c")), of(group("a"), group("b"), group("c")))
    assert (found.kind, found.subject, found.left) == ("change_group", "a", None)


def test_an_event_that_only_one_side_decided_about_is_found_at_its_place():
    one, other = of(timer(1, "a", 1)), of(timer(2, "b", 1), timer(7, "c", 1))
    assert [(found.offset, found.left is None) for found in compare(one, other)] == [
        (1, False),
        (2, True),
        (7, True),
    ]


def test_a_changed_row_of_a_block_is_named_by_its_partition():
    decisions = fold_log(long_log(5), 4)[1]
    blocks = [one for one in decisions if one.kind is DecisionKind.CHANGE_PARTITIONS]
    found = list(compare([blocks[0]], []))
    assert found
    assert all(one.subject == f"{one.left['topic']}-{one.left['partition']}" for one in found)
