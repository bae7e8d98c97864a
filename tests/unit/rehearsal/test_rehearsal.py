"""What comes of it when brokers of a made-up cluster fail, stop and start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from checkpoints.snapshot import Snapshot, write_snapshot
from state.routing import GROUP_SLOTS, Layout
from streaming.cli import app
from streaming.errors import ConfigurationError
from streaming.rehearsal.cluster_copy import ClusterCopy
from streaming.rehearsal.rehearsal import Outcome, rehearse
from streaming.rehearsal.steps import Step, StepKind, parsed_steps
from tests.fixtures.folding import fold_log
from tests.fixtures.story import Story, endpoints

LAYOUT = Layout(4, GROUP_SLOTS)
BROKERS = dict.fromkeys((1, 2, 3), 9)
CHECK = "controlled.shutdown.safety.check.enable"


def story(**config: Any) -> Story:
    """Three brokers with a topic of two partitions on all, and one on a single broker each."""
    told = Story()
    told.elect(BROKERS, **{"min.insync.replicas": 2} | config)
    told.create("all", [[1, 2, 3], [2, 3, 1]])
    told.create("one", [[1], [2], [3]])
    return told


def snapshot(told: Story) -> Snapshot:
    states, _ = fold_log(told.events, LAYOUT.slots)
    return Snapshot(len(told.events), LAYOUT, states)


def outcomes(told: Story, *steps: str) -> list[Outcome]:
    """What comes of steps, without how it was before."""
    return [*rehearse(ClusterCopy(snapshot(told)), parsed_steps(steps))][1:]


def test_it_is_told_first_how_partitions_are_without_a_judgement() -> None:
    told = story()
    told.unregister(1, 3)
    now, killed = rehearse(ClusterCopy(snapshot(told)), parsed_steps(["kill=2"]))
    assert (now.step, now.moved, now.leaders) == (None, 0, {2: 3})
    assert now.leaderless == [("one", 0), ("one", 2)]
    assert now.too_few == [("all", 0), ("all", 1)]
    assert not now.does_harm
    assert killed.leaderless == [("all", 0), ("all", 1), ("one", 1)]


def test_leaders_move_to_replicas_in_sync_and_what_has_no_other_is_leaderless() -> None:
    (killed,) = outcomes(story(), "kill=1")
    assert killed == Outcome(
        step=Step(StepKind.KILL, (1,)),
        moved=1,
        unclean=[],
        leaderless=[("one", 0)],
        too_few=[],
        refused={},
        leaders={2: 3, 3: 1},
    )
    assert killed.does_harm


def test_brokers_that_fail_at_once_leave_too_few_in_sync() -> None:
    (killed,) = outcomes(story(), "kill=1,2")
    assert killed.too_few == [("all", 0), ("all", 1)]
    assert killed.leaderless == [("one", 0), ("one", 1)]


def test_each_step_goes_on_from_the_one_before_and_says_what_is_new() -> None:
    first, second, back = outcomes(story(), "kill=3", "stop=2", "start=2,3")
    assert (first.leaderless, first.too_few) == ([("one", 2)], [])
    assert (second.leaderless, second.too_few) == ([("one", 1)], [("all", 0), ("all", 1)])
    assert (back.leaderless, back.too_few, back.does_harm) == ([], [], False)
    again, other = outcomes(story(), "kill=3", "start=3", "kill=2")[1:]
    assert not again.does_harm
    assert other.too_few == []  # 3 is in sync again


def test_a_rolling_restart_does_no_harm_to_what_is_replicated() -> None:
    told = Story()
    told.elect(BROKERS, **{"min.insync.replicas": 2})
    told.create("all", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    steps = [f"{how}={broker}" for broker in BROKERS for how in ("stop", "start")]
    found = outcomes(told, *steps)
    assert not any(one.does_harm for one in found)
    assert [one.moved for one in found] == [1, 0, 2, 0, 2, 0]
    assert sum(found[-1].leaders.values()) == 3


def test_the_check_of_shutdowns_is_asked_and_refuses() -> None:
    told = story(**{CHECK: True})
    safe, refused, gone = outcomes(told, "stop=3", "stop=2", "kill=2")
    assert not safe.refused
    assert refused.refused == {2: [("all", 0), ("all", 1)]}
    assert (refused.moved, refused.leaders) == (0, safe.leaders)
    assert gone.too_few == [("all", 0), ("all", 1)]


def test_who_was_not_in_sync_leads_where_that_is_allowed() -> None:
    told = story(**{"unclean.leader.election.enable": True})
    died, returned, rest = outcomes(told, "kill=3", "kill=1,2", "start=3")
    assert (died.unclean, returned.unclean) == ([], [])
    assert returned.leaderless == [("all", 0), ("all", 1), ("one", 0), ("one", 1)]
    assert rest.unclean == [("all", 0), ("all", 1)]
    never = outcomes(story(), "kill=3", "kill=1,2", "start=3")[-1]
    assert never.unclean == []


def test_topics_that_are_being_deleted_are_nobodys_loss() -> None:
    told = story()
    told.write("delete_topic_requested", "one", request_id="d", topic="one", topic_id=None)
    (killed,) = outcomes(told, "kill=1")
    assert killed.leaderless == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("1", "step '1': allowed are kill=BROKERS, stop=BROKERS"),
        ("drop=1", "step 'drop=1': allowed are .*, with ids and rack:NAME"),
        ("kill=", "step 'kill=': '' is no broker id"),
        ("kill=1,x", "step 'kill=1,x': 'x' is no broker id"),
        ("stop=-1", "'-1' is no broker id"),
        ("stop=99999999999", "'99999999999' is no broker id"),
    ],
)
def test_what_is_no_step_is_refused(given: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        parsed_steps([given])


def test_a_broker_is_named_once() -> None:
    assert parsed_steps([" kill = 2, 1,2 "]) == [Step(StepKind.KILL, (2, 1))]
    (step,) = parsed_steps(["stop=rack:b,02,rack:b,2"])
    assert (step, str(step)) == (Step(StepKind.STOP, (2,), ("b",)), "stop=2,rack:b")


def test_a_rack_is_its_brokers_that_run_or_do_not() -> None:
    told = story()
    racks = {1: "a", 2: "b", 3: "b"}
    updated = [
        {"id": id_, "epoch": 100 + id_, "rack": rack, "endpoints": endpoints(9)}
        for id_, rack in racks.items()
    ]
    told.write("broker_registrations_changed", updated=updated)
    died, returned, stopped = outcomes(told, "kill=3", "start=rack:b", "stop=1,rack:b")
    assert died.leaderless == [("one", 2)]
    assert returned.leaders == {1: 2, 2: 2, 3: 1}
    assert stopped.leaders == {}
    with pytest.raises(ConfigurationError, match="no broker of rack 'b' is off"):
        outcomes(told, "start=rack:b")
    with pytest.raises(ConfigurationError, match="no broker of rack 'c' is on"):
        outcomes(told, "kill=rack:c")


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (["kill=7"], "step kill=7: nothing is known of broker 7; running are 1, 2, 3"),
        (["kill=1", "stop=1"], "step stop=1: broker 1 runs no more; running are 2, 3"),
        (["start=2"], "step start=2: broker 2 runs already"),
        (["start=7"], "step start=7: nothing is known of broker 7"),
    ],
)
def test_a_step_that_cannot_happen_is_refused(steps: list[str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        outcomes(story(), *steps)


def test_a_broker_that_is_known_by_its_replicas_alone_can_start() -> None:
    told = story()
    told.unregister(3)
    (started,) = outcomes(told, "start=3")
    assert started.leaders == {1: 2, 2: 2, 3: 1}


def test_machines_that_decide_nothing_are_refused() -> None:
    told = story()
    told.write("controller_paused", reason="work")
    with pytest.raises(ConfigurationError, match="phase is paused, not active"):
        ClusterCopy(snapshot(told))


def test_the_command_tells_it_by_its_exit_code_and_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machines = tmp_path / "machines.parquet"
    write_snapshot(machines, snapshot(story()))
    given = ["--from-checkpoint", str(machines)]
    assert app(["rehearse", "stop=1", "start=1", *given], standalone_mode=False) == 1
    said = capsys.readouterr().out
    assert said.splitlines()[:4] == [
        "now: 5 partitions have a leader",
        "stop=1: 1 get another leader",
        "  1 without a leader: one-0",
        "start=1: 0 get another leader",
    ]

    assert app(["rehearse", "--json", "kill=1,2", *given], standalone_mode=False) == 1
    now, told = map(orjson.loads, capsys.readouterr().out.splitlines())
    assert (now["step"], now["leaders"]) == ("now", {"1": 2, "2": 2, "3": 1})
    assert told["step"] == "kill=1,2"
    assert told["leaders"] == {"3": 3}
    assert told["too_few"] == [["all", 0], ["all", 1]]

    replicated = Story()
    replicated.elect(BROKERS)
    replicated.create("all", [[1, 2, 3]])
    write_snapshot(machines, snapshot(replicated))
    assert app(["rehearse", "stop=1", *given], standalone_mode=False) == 0
    needed = ["--set", "min.insync.replicas=3"]
    assert app(["rehearse", "stop=1", *given, *needed], standalone_mode=False) == 1


def test_where_logs_end_is_taken_to_be_known_and_alike_everywhere() -> None:
    told = story(
        **{"unclean.leader.election.enable": True, "unclean.recovery.manager.enabled": True}
    )
    told.alter("all", 1, isr=[2])
    (killed,) = outcomes(told, "kill=2")
    assert killed.unclean == [("all", 1)]
    assert killed.leaderless == [("one", 1)]
