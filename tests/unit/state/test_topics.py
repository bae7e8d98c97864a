"""Topics that appear: created, loaded, repaired, removed."""

from __future__ import annotations

import pytest

from state.decisions import Action, DecisionKind, Rule
from state.matrix import NONE
from state.protocol_errors import ProtocolError
from tests.fixtures.states import stored
from tests.unit.state.support import Controller, actions, answer, broker

CHANGE, REWRITE = DecisionKind.CHANGE_PARTITIONS, DecisionKind.REWRITE_ASSIGNMENT
COMPLETE = DecisionKind.COMPLETE_REASSIGNMENT


def elected_again(*brokers: int) -> Controller:
    """Return a controller that has just been elected with epoch 6, and loads."""
    controller = Controller(brokers)
    controller.elect(6)
    controller.brokers(registered=[broker(id_, 100 + id_) for id_ in brokers])
    return controller


def test_a_new_topic_is_led_by_its_first_live_replica() -> None:
    [first, second] = Controller((1, 2)).topic("t", [[3, 2, 1], [1, 2]])[CHANGE]
    assert (first["leader"], first["isr"], first["recipients"]) == (2, [2, 1], [2, 1])
    assert (second["leader"], second["leader_epoch"], second["partition_epoch"]) == (1, 0, 0)
    assert actions(second) == (
        Action.WRITE
        | Action.CREATE
        | Action.LEADER_AND_ISR
        | Action.UPDATE_METADATA
        | Action.IS_NEW
    )
    assert first["rule"] == Rule.NEW_PARTITION_ELECTED


def test_a_partition_without_a_live_replica_waits_for_one() -> None:
    controller = Controller((1, 2))
    said = controller.topic("t", [[7, 8]])
    assert CHANGE not in said
    assert [row["reason"] for row in said[DecisionKind.REFUSE_TRANSITION]] == ["no_live_replica"]
    [row] = controller.brokers(registered=[broker(8, 108)])[CHANGE]
    assert (row["leader"], row["isr"], row["leader_epoch"]) == (8, [8], 0)


def test_partitions_that_are_added_leave_the_others_alone() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2]])
    said = controller.topic("t", [[1, 2], [2, 3]], [stored(1, [1, 2]), None])
    assert [row["partition"] for row in said[CHANGE]] == [1]


def test_a_topic_observed_twice_during_a_load_is_as_the_last_observation_says() -> None:
    controller = Controller()
    controller.elect(6)
    controller.brokers(registered=[broker(1, 101), broker(2, 102)])
    controller.topic("t", [[1, 2]], [stored(1, [1, 2])])
    controller.topic("t", [[1, 2], [2, 1]], [stored(2, [2], leader_epoch=1, zk_version=1), None])
    controller.happen("resync_completed", topics=1)
    assert controller.slot.table.rows.partition.tolist() == [0, 1]
    assert (controller.row("t", 0)["leader"], controller.row("t", 1)["leader"]) == (2, 2)


def test_our_own_id_is_replaced_by_a_live_broker_that_is_not_in_the_list() -> None:
    said = Controller((1, 2, 3)).topic("t", [[1000, 1], [1000, 1], [1, 2, 3, 1000]], zk_version=4)
    rewrite = said[REWRITE]
    assert rewrite["assignment"] == {"0": [2, 1], "1": [3, 1], "2": [1, 2, 3]}
    assert rewrite["expected_version"] == 4
    assert [row["replicas"] for row in said[CHANGE]] == [[2, 1], [3, 1], [1, 2, 3]]


@pytest.mark.parametrize(
    ("brokers", "leaving", "listed", "repaired"),
    [((1, 2, 3), 3, [1000, 1, 2], [3, 1, 2]), ((1,), 1, [1000], [1])],
)
def test_a_broker_that_shuts_down_can_take_our_place(
    brokers: tuple[int, ...], leaving: int, listed: list[int], repaired: list[int]
) -> None:
    controller = Controller(brokers)
    controller.shut_down(leaving)
    assert controller.topic("t", [listed])[REWRITE]["assignment"] == {"0": repaired}


def test_our_place_goes_to_a_rack_that_the_list_does_not_use() -> None:
    racks = {id_: "abc"[id_ % 3] for id_ in range(1, 10)}
    controller = Controller(())
    controller.brokers(registered=[broker(id_, 100 + id_, rack) for id_, rack in racks.items()])
    pairs = [(one, other) for one in racks for other in racks if racks[one] < racks[other]]
    listed = [[1000, *pair] for pair in pairs] + [[one, 1000, other] for one, other in pairs]
    repaired = controller.topic("t", listed)[REWRITE]["assignment"].values()
    assert {frozenset(racks[id_] for id_ in ids) for ids in repaired} == {frozenset("abc")}
    assert {ids[0] for ids in repaired} == set(racks), "they spread"


def test_our_place_goes_to_any_rack_when_each_is_used() -> None:
    controller = Controller(())
    racks = {1: "a", 2: "b", 3: "a", 4: None}
    controller.brokers(registered=[broker(id_, 100 + id_, rack) for id_, rack in racks.items()])
    said = controller.topic("t", [[1000, 1, 2], [1000, 1, 2], [1000, 1], [1000]])
    assert said[REWRITE]["assignment"] == {"0": [3, 1, 2], "1": [4, 1, 2], "2": [2, 1], "3": [1]}


@pytest.mark.parametrize("loading", [True, False])
def test_a_list_of_nobody_but_us_waits_for_a_broker(loading: bool) -> None:
    controller = elected_again() if loading else Controller(())
    assert REWRITE not in controller.topic("t", [[1000]], zk_version=4)
    assert controller.topic("u", [[1000, 8], [1000]])[REWRITE]["assignment"] == {
        "0": [8],
        "1": [1000],
    }
    several = None if loading else REWRITE
    said = controller.brokers(registered=[broker(2, 102)], several=several)
    if loading:
        said = controller.happen("resync_completed", topics=2, several=REWRITE)
    rows = [(row["name"], row["leader"], row["replicas"]) for row in said[CHANGE]]
    assert rows == [("t-0", 2, [2]), ("u-1", 2, [2])]
    assert {one["topic"]: one["assignment"] for one in said[REWRITE]} == {
        "t": {"0": [2]},
        "u": {"0": [8], "1": [2]},
    }
    assert controller.slot.table.topics[0].zk_version == 5
    assert REWRITE not in controller.brokers(registered=[broker(3, 103)])


@pytest.mark.parametrize("loading", [True, False])
def test_a_topic_that_waits_for_a_broker_can_be_deleted_when_one_is_there(loading: bool) -> None:
    controller = elected_again() if loading else Controller(())
    controller.topic("t", [[1000]])
    controller.happen("topic_deletion_requested", "t", topic="t")
    said = controller.brokers(registered=[broker(2, 102)])
    if loading:
        said = controller.happen("resync_completed", topics=1)
    assert [row["broker"] for row in said[DecisionKind.STOP_REPLICAS]] == [2]
    assert DecisionKind.DELETE_TOPIC in answer(controller, 2)


def test_what_was_repaired_is_not_repaired_differently_later() -> None:
    controller = Controller((1, 2, 3))
    controller.topic("t", [[1000, 1]])
    controller.brokers(unregistered=[2])
    again = controller.topic("t", [[1000, 1]], [stored(2, [2, 1])])
    assert again[REWRITE]["assignment"] == {"0": [2, 1]}
    assert controller.row("t", 0)["replicas"] == [2, 1]


def test_a_repaired_assignment_is_written_alike_whether_it_was_loaded_or_came_later() -> None:
    """What is being added or removed is among the replicas: we are not, any more."""
    given = {"replicas": [[1, 1000, 3]], "adding": [[1000, 3]], "removing": [[1]]}
    each = (Controller((1, 2, 3)), elected_again(1, 2, 3))
    written = [one.topic("t", **given, zk_version=4)[REWRITE] for one in each]
    for one in written:
        assert one["assignment"] == {"0": [1, 2, 3]}
        assert (one["adding"], one["removing"]) == ({"0": [3]}, {"0": [1]})
        assert one["expected_version"] == 4


@pytest.mark.parametrize("loading", [True, False])
def test_a_leader_hears_of_the_replica_that_took_our_place_with_a_higher_epoch(
    loading: bool,
) -> None:
    """Another controller has told it of us, with the epoch that is stored."""
    controller = elected_again(1, 2, 3) if loading else Controller((1, 2, 3))
    said = controller.topic("t", [[1000, 1, 2]], [stored(1, [1, 2])])
    assert said[REWRITE]["assignment"] == {"0": [3, 1, 2]}
    assert said[REWRITE]["adding"] == {"0": [3]}
    if loading:
        said = controller.happen("resync_completed", topics=1)
    [row] = said[CHANGE]
    assert (row["leader"], row["leader_epoch"], row["recipients"]) == (1, 1, [3, 1, 2])
    assert actions(row) & Action.WRITE
    done = controller.alter([1, 2, 3])[COMPLETE]
    assert (done["assignment"], done["adding"]) == ({"0": [3, 1, 2]}, {})


@pytest.mark.parametrize("loading", [True, False])
@pytest.mark.parametrize("isr", [[1, 2], [1]])
@pytest.mark.parametrize("motion", [{}, {"removing": [[1000]]}, {"adding": [[1000]]}])
def test_a_leader_hears_with_a_higher_epoch_that_nobody_took_our_place(
    loading: bool, isr: list[int], motion: dict[str, list[list[int]]]
) -> None:
    """Also where not all others are in sync: we have no data that they wait for."""
    controller = elected_again(1, 2) if loading else Controller((1, 2))
    state = stored(1, isr, leader_epoch=3, zk_version=7)
    said = controller.topic("t", [[1000, 1, 2]], [state], **motion, zk_version=4)
    if loading:
        assert said == {}
        assert controller.topic("t", [[1000, 1, 2]], [state], zk_version=4) == {}
        said = controller.happen("resync_completed", topics=1)
    assert REWRITE not in said, "it is written once"
    done = said[COMPLETE]
    assert (done["assignment"], done["adding"], done["removing"]) == ({"0": [1, 2]}, {}, {})
    assert done["expected_version"] == 4
    [row] = said[CHANGE]
    assert (row["leader"], row["leader_epoch"], row["isr"]) == (1, 4, isr)
    assert (row["replicas"], row["recipients"]) == ([1, 2], [1, 2])
    assert row["rule"] == Rule.LEADER_EPOCH_BUMPED
    again = controller.topic("t", [[1000, 1, 2]], [state], zk_version=4)
    assert CHANGE not in again
    assert again[REWRITE]["assignment"] == {"0": [1, 2]}


def test_a_topic_that_loses_us_can_be_deleted_at_once() -> None:
    controller = elected_again(1, 2)
    controller.topic("t", [[1000, 1, 2]], [stored(1, [1])])
    controller.happen("topic_deletion_requested", "t", topic="t")
    said = controller.happen("resync_completed", topics=1)
    stopped = {row["broker"] for row in said[DecisionKind.STOP_REPLICAS] if row["delete"]}
    assert stopped >= {1, 2}
    answer(controller, 1)
    assert DecisionKind.DELETE_TOPIC in answer(controller, 2)


def test_nobody_takes_our_place_where_a_reassignment_removes_us() -> None:
    controller = elected_again(1, 2, 3, 4)
    motion = {"replicas": [[3, 1, 2, 1000]], "adding": [[3]], "removing": [[1000]]}
    written = controller.topic("t", **motion, states=[stored(1, [1, 2])])[REWRITE]
    assert written["assignment"] == {"0": [3, 1, 2]}
    assert (written["adding"], written["removing"]) == ({"0": [3]}, {})
    controller.happen("resync_completed", topics=1)
    assert controller.alter([1, 2, 3])[COMPLETE]["assignment"] == {"0": [3, 1, 2]}


def test_a_replica_that_is_in_sync_needs_not_be_added() -> None:
    """It took our place before; then the state was written, the assignment was not."""
    controller = elected_again(1, 2, 3)
    said = controller.topic("t", [[1000, 1, 2]], [stored(3, [3, 1, 2])])
    assert (said[REWRITE]["assignment"], said[REWRITE]["adding"]) == ({"0": [3, 1, 2]}, {})
    assert COMPLETE not in controller.happen("resync_completed", topics=1)


def test_a_removed_topic_is_forgotten() -> None:
    controller = Controller()
    controller.topic("t", [[1]])
    controller.topic("u", [[2]])
    forgotten = {DecisionKind.FORGET_TOPIC: {"topic": "t"}}
    assert controller.happen("topic_removed", "t", topic="t") == forgotten
    assert controller.row("u", 0)["leader"] == 2


def test_a_topic_that_is_to_be_observed_again_is_told_of_as_it_was_until_it_is_or_goes() -> None:
    controller = Controller()
    controller.topic("t", [[1]])
    again = {"topic": "t", "observed_again": True}
    assert controller.take_back() == {DecisionKind.FORGET_TOPIC: again}
    assert controller.slot.table.topic("t") is None
    assert controller.take_back() == {}
    forgotten = {DecisionKind.FORGET_TOPIC: {"topic": "t"}}
    assert controller.happen("topic_removed", "t", topic="t") == forgotten


@pytest.mark.parametrize("seen_between", [False, True])
def test_leaders_that_were_refused_while_a_topic_was_read_again_get_a_higher_epoch(
    seen_between: bool,
) -> None:
    """They do not ask again, and wait for one; also where the change was seen by itself."""
    controller = Controller()
    controller.topic("t", [[1, 2]])
    controller.take_back()
    shrunk = {"partition": 0, "leader_epoch": 4, "partition_epoch": 7, "recovery": 0, "isr": [1]}
    said = controller.happen(
        "alter_partition_requested",
        "t",
        request_id="r",
        broker_id=1,
        broker_epoch=101,
        version=3,
        topic="t",
        topic_id=None,
        partitions=[shrunk],
    )
    [refused] = said[DecisionKind.REPLY]["partitions"]
    assert refused["error"] == ProtocolError.UNKNOWN_TOPIC_OR_PARTITION
    state = stored(1, [1, 2], leader_epoch=4, zk_version=7)
    if seen_between:
        controller.topic("t", [[1, 2]], [state])
    [row] = controller.topic("t", [[1, 2]], [state], observed_again=True)[CHANGE]
    assert (row["leader"], row["leader_epoch"], row["recipients"]) == (1, 5, [1, 2])
    assert (actions(row) & Action.WRITE, row["rule"]) == (Action.WRITE, Rule.LEADER_EPOCH_BUMPED)


def test_a_partition_that_is_read_again_and_elected_for_gets_one_higher_epoch() -> None:
    controller = Controller((1, 2))
    controller.topic("t", [[1, 2]])
    controller.take_back()
    controller.brokers(unregistered=[1])
    state = stored(1, [1, 2], leader_epoch=4, zk_version=7)
    [row] = controller.topic("t", [[1, 2]], [state], observed_again=True)[CHANGE]
    assert (row["leader"], row["leader_epoch"]) == (2, 5)


def test_a_topic_that_cannot_be_written_is_led_as_it_is() -> None:
    """Neither repaired nor given an id: that would be rejected again, and observed again."""
    controller = Controller((1, 2, 3))
    assert REWRITE in controller.topic("t", [[1000, 1]])
    controller.take_back()
    said = controller.topic("t", [[1000, 1]], unwritable=True)
    assert REWRITE not in said
    assert [(row["replicas"], row["leader"], row["isr"]) for row in said[CHANGE]] == [
        ([1000, 1], 1, [1])
    ]
    state = stored(1, [1])
    said = controller.topic("t", [[1000, 1]], [state], zk_version=1)
    assert said[REWRITE]["assignment"] == {"0": [2, 1]}, "tried when it changes"
    assert (said[REWRITE]["adding"], said[REWRITE]["removing"]) == ({"0": [2]}, {})
    [row] = said[CHANGE]
    assert (row["leader"], row["leader_epoch"], row["recipients"]) == (1, 1, [2, 1])
    assert controller.topic("t", [[2, 1]], [state], adding=[[2]], zk_version=2) == {}


@pytest.mark.parametrize("listed", [[1, 2], [1000, 2]])
def test_brokers_that_others_listed_while_a_topic_could_not_be_written_start(
    listed: list[int],
) -> None:
    controller = Controller((1, 2, 3))
    state = stored(1, [1], controller_epoch=4)
    controller.topic("t", [[1, 1000]], [state], unwritable=True)
    said = controller.topic("t", [listed], [state], zk_version=1)
    new = [id_ for id_ in controller.row("t", 0)["replicas"] if id_ not in (1, 1000)]
    assert said[REWRITE]["adding"] == {"0": new}
    assert 2 in new
    [row] = said[CHANGE]
    assert set(new) < set(row["recipients"])
    rows = controller.slot.table.rows
    assert rows.replica_state[rows.replicas != NONE].all(), "one is in no state"
    said = controller.alter([1, *new])
    assert said[COMPLETE]["assignment"] == {"0": said[CHANGE][0]["replicas"]}
    assert DecisionKind.REFUSE_TRANSITION not in controller.brokers(unregistered=[2])
    assert 2 not in controller.row("t", 0)["isr"]


def test_a_topic_that_cannot_be_written_and_is_deleted_stays_as_it_is() -> None:
    """Its deletion waits for us; to write it as it is would make it change, again and again."""
    controller = Controller((1, 2, 3))
    controller.topic("t", [[1000, 1]], unwritable=True)
    controller.happen("topic_deletion_requested", "t", topic="t")
    assert controller.topic("t", [[1000, 1]], zk_version=1) == {}


def test_a_load_writes_nothing_where_all_is_well() -> None:
    controller = Controller()
    controller.elect(6)
    controller.brokers(registered=[broker(1, 101), broker(2, 102)])
    assert controller.topic("t", [[1, 2]], [stored(1, [1, 2], leader_epoch=3, zk_version=7)]) == {}
    [row] = controller.happen("resync_completed", topics=1)[CHANGE]
    assert actions(row) == Action.LEADER_AND_ISR | Action.UPDATE_METADATA
    assert (row["recipients"], row["controller_epoch"]) == ([1, 2], 5)


def test_a_state_of_a_newer_controller_is_not_written_over() -> None:
    controller = Controller()
    controller.elect(6)
    controller.brokers(registered=[broker(2, 102)])
    controller.topic("t", [[1, 2]], [stored(1, [1, 2], controller_epoch=9)])
    said = controller.happen("resync_completed", topics=1)
    assert {row["reason"] for row in said[DecisionKind.REFUSE_TRANSITION]} == {
        "stored_by_newer_controller"
    }
    assert not any(actions(row) & Action.WRITE for row in said.get(CHANGE, []))


ID, OTHER = "AAECAwQFBgcICQoLDA0ODw", "EBESExQVFhcYGRobHB0eHw"


def test_a_new_topic_without_an_id_gets_the_one_that_was_minted() -> None:
    said = Controller().topic("t", [[1, 2]], new_topic_id=ID)
    assert (said[REWRITE]["topic_id"], said[REWRITE]["expected_version"]) == (ID, 0)
    assert said[REWRITE]["assignment"] == {"0": [1, 2]}
    assert said[CHANGE][0]["topic_id"] == ID


def test_an_id_is_minted_once_however_often_the_topic_is_seen_before_it_is_written() -> None:
    controller = Controller()
    controller.topic("t", [[1, 2]], new_topic_id=ID)
    assert controller.topic("t", [[1, 2]], new_topic_id=OTHER) == {}
    said = controller.topic("t", [[1, 2], [2, 1]], new_topic_id=OTHER, zk_version=1)
    assert (said[REWRITE]["topic_id"], said[REWRITE]["expected_version"]) == (ID, 1)
    assert REWRITE not in controller.topic("t", [[1, 2], [2, 1]], topic_id=ID, zk_version=2)


def test_a_topic_that_is_loaded_without_an_id_is_written_with_it() -> None:
    controller = Controller()
    controller.elect(6)
    controller.brokers(registered=[broker(1, 101)])
    said = controller.topic("t", [[1]], [stored(1, [1])], new_topic_id=ID, zk_version=4)
    assert (said[REWRITE]["topic_id"], said[REWRITE]["expected_version"]) == (ID, 4)
    [row] = controller.happen("resync_completed", topics=1)[CHANGE]
    assert row["topic_id"] == ID


def test_a_topic_that_has_an_id_keeps_it() -> None:
    controller = Controller()
    said = controller.topic("t", [[1, 2]], topic_id=ID, new_topic_id=OTHER)
    assert REWRITE not in said
    assert said[CHANGE][0]["topic_id"] == ID
