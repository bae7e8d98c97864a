"""Several changes of a partition in one batch become one row."""

from __future__ import annotations

from hypothesis import given

from state.blocks import decode_block
from state.decisions import Action, DecisionKind
from state.events import Event
from state.matrix import unpad
from streaming.sinks.batch import decided_batch
from streaming.sinks.block_merging import merge_changes
from streaming.sinks.persisted import persisted
from tests.fixtures.story import Fold
from tests.logs.state_logs import LOGS
from tests.unit.sinks.support import Job, changes, lose


def rows_of(merged):
    columns, topics, ids = merged
    return [
        {
            "id": (topics[columns["topic"][row]], int(columns["partition"][row])),
            "topic_id": ids[columns["topic"][row]],
            "leader": int(columns["leader"][row]),
            "epoch": int(columns["leader_epoch"][row]),
            "isr": unpad(columns["isr"][row]),
            "told": columns["replicas"][row][columns["recipients"][row]].tolist(),
            "actions": Action(int(columns["actions"][row])),
        }
        for row in range(len(columns["topic"]))
    ]


def started(assignment=((1, 2, 3), (2, 3, 1))):
    job = Job()
    job.story.elect({1: 1, 2: 2, 3: 3})
    job.story.create("t", assignment)
    return job


def test_the_last_row_stays_with_the_actions_and_recipients_of_all():
    job = started()
    job.story.unregister(1)
    job.story.alter("t", 1, [2], leader_epoch=1, partition_epoch=1)
    rows = rows_of(merge_changes(changes(job.decide())))
    first, second = rows
    assert (first["id"], first["leader"], first["epoch"], first["isr"]) == (("t", 0), 2, 1, [2, 3])
    assert first["told"] == [1, 2, 3], "creation told all three, the failure two of them"
    assert (
        first["actions"]
        == (Action.WRITE | Action.CREATE | Action.LEADER_AND_ISR | Action.UPDATE_METADATA)
        | Action.IS_NEW
    )
    assert (second["id"], second["leader"], second["epoch"]) == (("t", 1), 2, 1)
    assert second["isr"] == [2], "the leader's own change came last"


def test_topics_are_sorted_and_widths_are_those_of_the_widest():
    job = started([[1, 2, 3]])
    job.story.create("a", [[2]])
    job.story.create("z", [[3, 1]], topic_id="xVg7K6qyTvmxpuD7RnqU_w")
    columns, topics, ids = merge_changes(changes(job.decide()))
    assert topics == ["a", "t", "z"]
    assert ids == [None, None, "xVg7K6qyTvmxpuD7RnqU_w"]
    assert columns["topic"].tolist() == [0, 1, 2]
    assert columns["replicas"].tolist() == [[2, -1, -1], [1, 2, 3], [3, 1, -1]]
    assert columns["recipients"].tolist() == [[True, False, False], [True] * 3, [True, True, False]]


def test_lost_rows_are_not_there():
    job = started()
    job.story.unregister(1)
    batch = job.decide()
    lose(batch, "t", 0, at=1)
    first, second = rows_of(merge_changes(changes(batch)))
    assert (first["id"], first["leader"], first["epoch"]) == (("t", 0), 1, 0), "as before the loss"
    assert (second["id"], second["leader"], second["isr"]) == (("t", 1), 2, [2, 3])
    for one in changes(batch):
        one.lost[:] = True
    assert merge_changes(changes(batch)) is None
    assert merge_changes([]) is None


def test_one_decision_with_a_lost_row_keeps_the_others():
    job = started()
    batch = job.decide()
    lose(batch, "t", 0)
    (row,) = rows_of(merge_changes(changes(batch)))
    assert row["id"] == ("t", 1)


@given(log=LOGS)
def test_merged_rows_say_what_the_rows_said_one_by_one(log: list[Event]) -> None:
    """The same by a loop over rows."""
    batch = decided_batch(1, Fold(4).folded(log))
    last: dict[tuple[str, int], dict] = {}
    told: dict[tuple[str, int], set[int]] = {}
    ids: dict[str, str | None] = {}
    for one in changes(batch):
        ids.update(zip(one.topics, one.topic_ids, strict=True))
        rows = rows_of((one.columns, one.topics, one.topic_ids))
        for row, replicas in zip(rows, one.columns["replicas"].tolist(), strict=True):
            subject = row["id"]
            told.setdefault(subject, set()).update(row["told"])
            row["told"] = [broker for broker in replicas if broker in told[subject]]
            if subject in last:
                row["actions"] |= last[subject]["actions"] & ~Action.DELETED
            last[subject] = row
    expected = [last[one] | {"topic_id": ids[one[0]]} for one in sorted(last)]
    merged = merge_changes(changes(batch))
    assert ([] if merged is None else rows_of(merged)) == expected


def test_what_the_image_sees_is_merged_between_other_decisions():
    job = started()
    job.story.unregister(1)
    job.story.remove("t", ((1, 2, 3), (2, 3, 1)))
    job.story.create("t", [[2]])
    job.story.alter("t", 0, [2], partition_epoch=0)
    batch = job.decide()
    seen = list(persisted(batch))
    kinds = [one.kind for one in seen]
    assert kinds == [
        DecisionKind.UPDATE_BROKERS,
        DecisionKind.CHANGE_PARTITIONS,
        DecisionKind.UPDATE_BROKERS,
        DecisionKind.CHANGE_PARTITIONS,
        DecisionKind.FORGET_TOPIC,
        DecisionKind.CHANGE_PARTITIONS,
    ]
    job.persist(batch)
    assert len(job.image) == 1
    assert job.image.columns["replicas"].tolist() == [[2, -1, -1]]
    assert decode_block(seen[-1].body)[1]["topics"] == ["t"]


def test_a_failed_or_lost_decision_is_seen_by_nobody():
    job = started()
    batch = job.decide()
    lose(batch, "t", 0)
    lose(batch, "t", 1)
    assert [one.kind for one in persisted(batch)] == [DecisionKind.UPDATE_BROKERS]
