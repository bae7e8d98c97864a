"""Bodies of decisions have the fields of their types, in logs that reach every kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import orjson

from state import bodies, reply_bodies
from state.decisions import BLOCK_KINDS, DecisionKind
from state.groups import change_bodies
from state.groups.change_kinds import ChangeKind
from tests.logs import group_intents
from tests.logs.state_logs import author_of, random_intents

LOGS = 20
BODIES: dict[str, type[Any]] = {
    DecisionKind.UPDATE_BROKERS: bodies.UpdateBrokers,
    DecisionKind.CREATE_TOPIC: bodies.CreateTopic,
    DecisionKind.REWRITE_ASSIGNMENT: bodies.RewriteAssignment,
    DecisionKind.COMPLETE_REASSIGNMENT: bodies.RewriteAssignment,
    DecisionKind.MARK_TOPIC_DELETION: bodies.MarkTopicDeletion,
    DecisionKind.UNMARK_TOPIC_DELETION: bodies.MarkTopicDeletion,
    DecisionKind.DELETE_TOPIC: bodies.DeleteTopic,
    DecisionKind.FORGET_TOPIC: bodies.ForgetTopic,
    DecisionKind.REMOVE_REASSIGNMENTS: bodies.RemoveReassignments,
    DecisionKind.DELETE_ADMIN_ZNODE: bodies.DeleteAdminZnode,
    DecisionKind.DELETE_DELEGATION_TOKEN: bodies.DeleteDelegationToken,
    DecisionKind.WRITE_PRODUCER_ID_BLOCK: bodies.WriteProducerIdBlock,
    DecisionKind.CHECK_SHUTDOWN: bodies.CheckShutdown,
    DecisionKind.SET_PAUSE: bodies.SetPause,
    DecisionKind.ARM_TIMER: bodies.ArmTimer,
    DecisionKind.SET_ASIDE: bodies.SetAside,
    DecisionKind.CHANGE_GROUP: bodies.ChangeGroup,
}
REPLIES: dict[str, type[Any]] = {
    reply_bodies.ControllerApi.ALTER_PARTITION: reply_bodies.AlterPartitionReply,
    reply_bodies.ControllerApi.CONTROLLED_SHUTDOWN: reply_bodies.ControlledShutdownReply,
    reply_bodies.ControllerApi.CREATE_TOPIC: reply_bodies.CreateTopicReply,
    reply_bodies.ControllerApi.CREATE_PARTITIONS: reply_bodies.CreatePartitionsReply,
    reply_bodies.ControllerApi.DELETE_TOPIC: reply_bodies.DeleteTopicReply,
    reply_bodies.ControllerApi.ELECT_LEADERS: reply_bodies.PartitionsReply,
    reply_bodies.ControllerApi.ALTER_REASSIGNMENTS: reply_bodies.PartitionsReply,
    reply_bodies.ControllerApi.RAISE_LEADER_EPOCHS: reply_bodies.RaiseLeaderEpochsReply,
    reply_bodies.ControllerApi.PRODUCER_IDS: reply_bodies.ProducerIdsReply,
}


CHANGE_BODIES: dict[str, type[Any]] = {
    get_args(get_type_hints(one)["change"])[0]: one for one in get_args(change_bodies.Change)
}


def bodies_of_logs() -> Iterable[tuple[str, dict[str, Any]]]:
    for seed in range(LOGS):
        author = author_of(random_intents(seed), plausible=bool(seed % 2))
        for one in author.decided:
            if one.kind not in BLOCK_KINDS:
                yield one.kind, orjson.loads(one.body)
        for _, kind, body in group_intents.long_log(seed).decided:
            yield kind, body


def test_every_kind_of_body_has_its_type() -> None:
    assert BODIES.keys() | {DecisionKind.REPLY} | BLOCK_KINDS == set(DecisionKind)
    assert REPLIES.keys() == set(reply_bodies.ControllerApi)
    assert CHANGE_BODIES.keys() == set(ChangeKind)


def misfits(typed: type[Any], body: dict[str, Any]) -> set[str]:
    """Return the fields that are missing, and those that are too many."""
    hints = get_type_hints(typed, include_extras=True)
    required = {name for name, hint in hints.items() if get_origin(hint) is not NotRequired}
    return (required - body.keys()) | (body.keys() - hints.keys())


def test_bodies_have_the_fields_of_their_type_and_no_others() -> None:
    met = set()
    for kind, body in bodies_of_logs():
        typed = REPLIES[body["api"]] if kind == DecisionKind.REPLY else BODIES[kind]
        met.add(typed)
        assert misfits(typed, body) == set(), (kind, body)
        for step in body["steps"] if typed is bodies.ChangeGroup else ():
            assert misfits(bodies.GroupStep, step) == set(), step
            if undo := step.get("undo"):
                assert any(not misfits(one, undo) for one in get_args(bodies.Undo)), undo
            for change in step["changes"]:
                changed = CHANGE_BODIES[change["change"]]
                met.add(changed)
                assert misfits(changed, change) == set(), change
                assert "at_ms" in change
    assert met == {*BODIES.values(), *REPLIES.values(), *CHANGE_BODIES.values()}
