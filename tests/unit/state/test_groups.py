"""Rules of consumer groups that no scenario of Kafka's tests asserts."""

from __future__ import annotations

import orjson
import pytest

from checkpoints.fold import fold_state
from state.decisions import DecisionKind
from state.events import Event
from state.groups.answers import describe_group, fetch_offsets, heartbeat_error, list_groups
from state.groups.buckets import BUCKETS, bucket_of_timer, group_bucket, timer_name
from state.groups.image import GroupImage
from state.groups.load import LoadedPartition
from state.groups.offset_rows import OffsetRow, loaded_position
from state.groups.payloads.requests import Heartbeat
from state.groups.states import GroupState
from state.groups.tables import CoordinatorPhase
from state.protocol_errors import ProtocolError
from state.routing import ALL_GROUPS, GROUP_KEY, GROUP_SCOPE, Layout, machine_keys, scope
from tests.unit.state.group_support import Coordinator, image_of, metadata


def stable(**config: int) -> tuple[Coordinator, str]:
    """Return a coordinator with a stable group "g" of one member, and the member's id."""
    coordinator = Coordinator(**config)
    joined = coordinator.join("g", version=3)
    coordinator.tick(3_000)
    member = coordinator.answer(joined)["member"]
    coordinator.sync("g", member, 1, [[member, "AAEC"]])
    return coordinator, member


def test_a_static_member_that_gave_its_id_up_is_not_told_that_another_took_its_place() -> None:
    coordinator = Coordinator()
    joined = coordinator.join("g", instance="one")
    coordinator.tick(3_000)
    member = coordinator.answer(joined)["member"]
    coordinator.sync("g", member, 1, [[member, "AAEC"]])
    image = image_of(coordinator.slot)

    def answers(sender: str) -> set[ProtocolError]:
        asked = coordinator.commit("g", [["t", 0, 7, -1, ""]], sender, 1, instance="one")
        committed = coordinator.answer(asked)["partitions"]
        beat = heartbeat_error(image, CoordinatorPhase.OWNED, Heartbeat("g", sender, "one", 1))
        return {beat, *(ProtocolError(error) for *_, error in committed)}

    assert answers("") == {ProtocolError.UNKNOWN_MEMBER_ID}
    assert answers("another") == {ProtocolError.FENCED_INSTANCE_ID}
    assert answers(member) == {ProtocolError.NONE}


def test_groups_have_machines_of_their_own_and_a_bucket_has_one_whatever_the_slots() -> None:
    for name in ("g", "", "ü", "a.b"):
        assert scope("join_group_requested", name) == GROUP_SCOPE + group_bucket(name)
        bucket = str(group_bucket(name))
        assert scope("heartbeats_received", bucket) == scope("join_group_requested", name)
    assert scope("transaction_completed", "") == ALL_GROUPS
    assert machine_keys(ALL_GROUPS, Layout(8, 3)) == (GROUP_KEY, GROUP_KEY + 1, GROUP_KEY + 2)
    assert machine_keys(GROUP_SCOPE + BUCKETS - 1, Layout(8, 16)) == (GROUP_KEY + 15,)
    assert bucket_of_timer(timer_name(17)) == 17
    assert bucket_of_timer("leader_rebalance") is None


@pytest.mark.parametrize(
    ("kind", "key", "body", "reason"),
    [
        ("heartbeats_received", "x", {"heartbeats": []}, "is not a bucket"),
        ("heartbeats_received", str(BUCKETS), {"heartbeats": []}, "is not a bucket"),
        ("heartbeats_received", "0", {"heartbeats": [["g", "m", None, 1]]}, "not of bucket 0"),
        (
            "heartbeats_received",
            "0",
            {"heartbeats": [], "synced": [["g", 1, ["m"]]]},
            "not of bucket 0",
        ),
        (
            "delete_group_requested",
            "h",
            {"request_id": "r", "partition": 0, "group": "g", "version": 2},
            "payload is about group 'g'",
        ),
        ("transaction_completed", "", {"producer_id": 1, "committed": 1}, "neither true nor"),
        ("join_group_requested", "g", {"request_id": "r"}, "'partition' is missing"),
    ],
    ids=str,
)
def test_an_event_that_cannot_be_read_is_set_aside(kind, key, body, reason) -> None:
    _, found = fold_state(GROUP_KEY, None, [Event(0, 0, kind, key, orjson.dumps(body))])
    assert [one.kind for one in found] == [DecisionKind.SET_ASIDE]
    assert reason in orjson.loads(found[0].body)["reason"]


BUCKET = str(group_bucket("g"))


def heard(coordinator: Coordinator, *rows: list[object]) -> None:
    coordinator.happen("heartbeats_received", BUCKET, heartbeats=rows)


def removed(coordinator: Coordinator) -> list[tuple[str, str, int]]:
    return [
        (change["member"], change["reason"], change["at_ms"])
        for step in coordinator.steps
        for change in step["changes"]
        if change["change"] == "member_removed"
    ]


def test_the_clock_is_told_the_earliest_deadline_and_not_each_later_one() -> None:
    coordinator = Coordinator()
    coordinator.join("g", session_timeout_ms=6_000)
    timer = timer_name(group_bucket("g"))
    told = {timer: 6_000}
    assert coordinator.timers == told
    coordinator.now_ms = 1_000
    coordinator.join("g", session_timeout_ms=6_000)
    assert coordinator.timers == told
    coordinator.tick(6_000)
    assert coordinator.timers == {timer: 7_000}


def test_the_clock_is_not_told_of_sessions() -> None:
    coordinator, member = stable()
    timer = timer_name(group_bucket("g"))
    assert coordinator.timers == {timer: 63_000}, "what is left of the sync deadline"
    coordinator.tick(10_000)
    heard(coordinator, ["g", member, None, 1])
    coordinator.now_ms = 63_000
    heard(coordinator, ["g", member, None, 1, 5_000])
    coordinator.tick(63_000)
    assert coordinator.timers == {}
    assert coordinator.group("g").members[member].deadline_ms == 68_000


def test_what_nobody_waits_for_may_be_told_late() -> None:
    coordinator, member = stable()
    timer = timer_name(group_bucket("g"))
    coordinator.now_ms = 60_000
    heard(coordinator, ["g", member, None, 1, 0])
    coordinator.join("g")
    coordinator.tick(63_000)
    assert (coordinator.timers[timer], coordinator.slacks[timer]) == (70_000, 1_000)
    heard(coordinator, ["g", member, None, 1, 0])
    coordinator.tick(71_000)
    assert coordinator.timers == {}
    coordinator.join("g", version=3, rebalance_timeout_ms=1_500)
    coordinator.ask("leave_group_requested", "g", members=[{"member": member}])
    assert (coordinator.timers[timer], coordinator.slacks[timer]) == (72_500, 0)


def test_a_session_ends_its_length_after_the_member_was_heard_of_last() -> None:
    """However late that is told, and by which event."""
    coordinator, member = stable()
    coordinator.now_ms = 50_000
    heard(coordinator, ["g", member, None, 1, 9_999])
    assert coordinator.group("g").members[member].deadline_ms == 50_001
    coordinator.now_ms = 60_000
    heard(coordinator, ["g", member, None, 1, 14_000])
    assert removed(coordinator) == [(member, "session_expired", 56_000)]


def test_a_member_that_was_heard_of_stays_while_others_go() -> None:
    coordinator, member = stable()
    joined = coordinator.join("g", version=3, rebalance_timeout_ms=1_000)
    rejoined = coordinator.join("g", member, rebalance_timeout_ms=1_000)
    other = coordinator.answer(joined)["member"]
    assert coordinator.answer(rejoined)["generation"] == 2
    coordinator.sync("g", member, 2, [[member, "AAEC"], [other, ""]])
    coordinator.sync("g", other, 2)
    coordinator.now_ms = 13_500
    heard(coordinator, ["g", member, None, 2, 1_000])
    assert removed(coordinator) == [(other, "session_expired", 13_000)]
    assert coordinator.group("g").members[member].deadline_ms == 22_500


def test_a_member_that_waits_is_kept_by_nothing_that_was_heard_before() -> None:
    coordinator, _ = stable()
    coordinator.join("g", version=3)
    [_, new] = coordinator.group("g").members.values()
    coordinator.now_ms = 4_000
    heard(coordinator, ["g", new.id, None, 1, 50])
    assert coordinator.group("g").members[new.id].deadline_ms == new.deadline_ms == 303_000


@pytest.mark.parametrize(
    ("generation", "silent_ms", "deadline_ms"),
    [(1, 0, 14_000), (1, 9_000, 5_000), (0, 0, 14_000), (0, 9_000, 13_000)],
)
def test_who_was_heard_of_before_its_generation_was_known_stays_no_shorter_for_it(
    generation: int, silent_ms: int, deadline_ms: int
) -> None:
    """A coordinator that hears of decisions late tells of the generation before."""
    coordinator, member = stable()
    coordinator.now_ms = 4_000
    heard(coordinator, ["g", member, None, generation, silent_ms])
    assert coordinator.group("g").members[member].deadline_ms == deadline_ms


def test_a_heartbeat_of_another_generation_without_its_time_keeps_nobody() -> None:
    coordinator, member = stable()
    coordinator.now_ms = 4_000
    heard(coordinator, ["g", member, None, 0])
    assert coordinator.group("g").members[member].deadline_ms == 13_000


def test_a_coordinator_that_does_not_know_who_was_heard_of_ends_no_session() -> None:
    for unheard, ended in ((False, 1), (True, 0)):
        coordinator, _ = stable()
        coordinator.now_ms = 90_000
        body = {"partitions": [4], "epoch": None, "unheard": unheard}
        coordinator.happen("group_partitions_resigned", **body)
        assert len(removed(coordinator)) == ended


def test_a_clock_that_is_late_changes_nothing_but_the_event_it_is_told_with() -> None:
    coordinator, member = stable()
    coordinator.now_ms = 900_000
    request = coordinator.commit("g", [["a", 0, 5, -1, ""]], member, 1)
    assert coordinator.answer(request)["error"] == ProtocolError.UNKNOWN_MEMBER_ID
    changes = [change for step in coordinator.steps[-3:] for change in step["changes"]]
    assert [(one["change"], one["at_ms"]) for one in changes] == [
        ("member_removed", 13_000),
        ("rebalance_started", 13_000),
        ("group_emptied", 13_000),
    ]


def test_an_absent_static_member_is_waited_for_until_its_session_ends() -> None:
    coordinator = Coordinator()
    coordinator.join("g", instance="i", version=5)
    coordinator.tick(3_000)
    other = coordinator.join("g", version=3, rebalance_timeout_ms=4_000, session_timeout_ms=50_000)
    coordinator.tick(12_999)
    assert other not in coordinator.replies
    coordinator.tick(13_000)
    assert coordinator.answer(other)["generation"] == 2
    assert list(coordinator.group("g").instances) == []


def test_a_leader_that_does_not_rejoin_is_followed_by_one_who_did() -> None:
    coordinator = Coordinator()
    timeouts = {"rebalance_timeout_ms": 5_000, "session_timeout_ms": 60_000}
    first = coordinator.join("g", version=3, **timeouts)
    second = coordinator.join("g", version=3, **timeouts)
    coordinator.tick(3_000 + 2_000)
    ids = [coordinator.answer(one)["member"] for one in (first, second)]
    for one in reversed(ids):
        coordinator.sync("g", one, 1, [[one, ""]])
    again = coordinator.join("g", ids[1], version=3, protocols=[["range", ""]], **timeouts)
    coordinator.tick(coordinator.now_ms + 5_000)
    assert coordinator.answer(again)["leader"] == ids[1]
    assert list(coordinator.group("g").members) == [ids[1]]


def test_pending_ids_and_new_members_are_forgotten_when_nobody_comes() -> None:
    coordinator = Coordinator()
    coordinator.join("g", session_timeout_ms=6_000)
    coordinator.tick(5_999)
    assert len(coordinator.group("g").pending) == 1
    coordinator.tick(6_000)
    assert coordinator.group("g").pending == {}
    assert coordinator.expire()[0]["changes"][0]["reason"] == "expired"
    assert coordinator.group("g") is None


def test_later_replies_name_the_write_that_they_rest_on() -> None:
    coordinator, member = stable()
    request = coordinator.sync("g", member, 1)
    assert coordinator.answer(request)["after"] == [coordinator.group("g").assigned_by[0], 0]


def test_transactions_open_only_the_buckets_that_take_part() -> None:
    coordinator, _ = stable()
    coordinator.txn_commit("simple", 7, [["a", 0, 5, -1, ""]])
    before = coordinator.slot
    done = {"producer_id": 7, "committed": True, "partitions": [4]}
    [step] = coordinator.happen("transaction_completed", **done)
    assert step["changes"][0]["offsets"][0][:3] == ["a", 0, 5]
    assert before.transactional == {group_bucket("simple")}
    assert coordinator.slot.transactional == set()
    assert coordinator.happen("transaction_completed", **done) == []


def test_observed_groups_count_from_when_they_were_observed() -> None:
    coordinator = Coordinator()
    coordinator.happen("group_partitions_resigned", partitions=[4], epoch=1)
    coordinator.happen("group_partitions_elected", partitions=[4], epoch=2)
    found = LoadedPartition()
    member = {
        "member": "m",
        "instance": None,
        "client": "c",
        "host": "/h",
        "session_timeout_ms": 7_000,
        "rebalance_timeout_ms": 9_000,
        "metadata": metadata("a"),
        "assignment": "AA==",
    }
    rest = {"protocol_type": "consumer", "protocol": "range", "leader": "m"}
    found.group_metadata(
        "g", {**rest, "generation": 5, "state_since_ms": None, "members": [member]}
    )
    found.group_metadata("h", None)
    row = OffsetRow(3, -1, "", 0, None, loaded_position(0))
    found.offset_commit("g", ("a", 0), row, None)
    found.offset_commit("h", ("a", 0), row, 9)
    observed = list(found.observed(4, 2))
    assert [one["group"] for one in observed] == ["g", "h"]
    coordinator.now_ms = 50_000
    for one in observed:
        coordinator.happen("group_observed", one["group"], **one)
    request = coordinator.commit("g", [["a", 0, 4, -1, ""]], "m", 5)
    assert coordinator.answer(request)["error"] == ProtocolError.COORDINATOR_LOAD_IN_PROGRESS
    coordinator.happen("group_partitions_loaded", partitions=[4], epoch=1)
    coordinator.happen("group_partitions_loaded", partitions=[4], epoch=2)
    group = coordinator.group("g")
    assert (group.state, group.generation, group.next_deadline_ms) == ("Stable", 5, 57_000)
    assert coordinator.group("h").store.pending == {9: {("a", 0): row}}
    late = {**observed[0], "epoch": 2}
    assert coordinator.happen("group_observed", "g", **late) == []
    request = coordinator.commit("g", [["a", 0, 4, -1, ""]], "m", 5)
    assert coordinator.answer(request)["error"] == ProtocolError.NONE


def test_a_loaded_group_that_is_too_large_rebalances() -> None:
    coordinator = Coordinator(**{"group.max.size": 1})
    coordinator.happen("group_partitions_elected", partitions=[5], epoch=2)
    members = [
        {
            "member": name,
            "instance": None,
            "client": "c",
            "host": "/h",
            "session_timeout_ms": 7_000,
            "rebalance_timeout_ms": 9_000,
            "metadata": "",
            "assignment": "",
        }
        for name in "ab"
    ]
    metadata_of = {
        "generation": 1,
        "protocol_type": "consumer",
        "protocol": "range",
        "leader": "a",
        "state_since_ms": 0,
        "members": members,
    }
    body = {"partition": 5, "epoch": 2, "metadata": metadata_of, "offsets": [], "pending": []}
    coordinator.happen("group_observed", "g", group="g", **body)
    assert coordinator.group("g").state is GroupState.PREPARING


def test_a_refusal_of_a_group_that_is_gone_is_answered_all_the_same() -> None:
    coordinator = Coordinator()
    reply = {"request_id": "r9", "api": "offset_commit", "error": 0, "partitions": []}
    body = {
        "partition": 4,
        "write": [3, 0],
        "error": ProtocolError.NOT_ENOUGH_REPLICAS,
        "undo": None,
        "offsets": [],
    }
    coordinator.happen("group_records_refused", "g", group="g", replies=[reply], **body)
    assert coordinator.answer("r9")["error"] == ProtocolError.COORDINATOR_NOT_AVAILABLE


def test_answers_without_a_group() -> None:
    image = GroupImage()
    heard = Heartbeat("g", "m", None, 1)
    assert heartbeat_error(image, CoordinatorPhase.OWNED, heard) is ProtocolError.UNKNOWN_MEMBER_ID
    assert heartbeat_error(image, CoordinatorPhase.NONE, heard) is ProtocolError.NOT_COORDINATOR
    assert describe_group(image, CoordinatorPhase.OWNED, "g").state == "Dead"
    assert list_groups(image, [CoordinatorPhase.OWNED]) == (ProtocolError.NONE, [])
    error, [row] = fetch_offsets(
        image, CoordinatorPhase.OWNED, "g", [("a", 0)], require_stable=True
    )
    assert (error, row.offset, row.error) == (ProtocolError.NONE, -1, ProtocolError.NONE)


def test_an_image_survives_writes_of_a_group_that_is_gone() -> None:
    coordinator = Coordinator()
    coordinator.commit("g", [["a", 0, 5, -1, ""]])
    image = GroupImage()
    decided = image.begin(9, decision(coordinator.steps))
    image.begin(10, decision([{"changes": [{"change": "group_removed"}], "replies": []}]))
    for write in decided.writes:
        image.appended(write)
    assert image.groups == {}
    assert not image.unstable("g")


def decision(steps: list[dict[str, object]]) -> dict[str, object]:
    return {"group": "g", "partition": 4, "steps": steps}
