"""Events of whole-controller stories, turned into what the observers and the gateway would log."""

from __future__ import annotations

from typing import Any, cast

import orjson

from state.cluster.leader_rebalance import LEADER_REBALANCE_TIMER
from state.protocol_errors import ProtocolError
from streaming.front.preparation import feature_write
from streaming.zk.claim import ControllerClaim, claim_controller
from streaming.zk.client import ZkSession
from streaming.zk.ops import Check
from streaming.zk.znodes import (
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    DELETE_TOPICS_PATH,
    FEATURE_PATH,
    controller_bytes,
    epoch_bytes,
)
from tests.conformance import names
from tests.conformance.sink import settle
from tests.conformance.verdict import NotUnderstoodError, only
from tests.conformance.world import CONTROLLER_ID, World
from tests.fixtures.observed_topics import topics_of


def broker_up(world: World, event: dict[str, Any]) -> None:
    """A broker registers; a new epoch of one that is registered is a bounce."""
    only(event, {"event", "broker", "broker_epoch", "rack"}, "broker_up")
    change = "bounced" if event["broker"] in world.brokers else "registered"
    _register(world, event)
    body: dict[str, Any] = {change: [_registration(world, event["broker"])]}
    world.happen("broker_registrations_changed", **body)
    settle(world)


def _register(world: World, event: dict[str, Any]) -> None:
    before = world.brokers.get(event["broker"], (0, None))
    epoch = event.get("broker_epoch", before[0] + 1)
    world.brokers[event["broker"]] = (epoch, event.get("rack", before[1]))


def _registration(world: World, broker: int) -> dict[str, Any]:
    epoch, rack = world.brokers[broker]
    return {"id": broker, "epoch": epoch, "rack": rack, "endpoints": []}


def broker_down(world: World, event: dict[str, Any]) -> None:
    """A broker's registration goes away."""
    only(event, {"event", "broker"}, "broker_down")
    world.brokers.pop(event["broker"], None)
    world.happen("broker_registrations_changed", unregistered=[event["broker"]])
    settle(world)


def elect_controller(world: World, event: dict[str, Any]) -> None:
    """A broker starts and the cluster gets a controller: it registers, and we claim the role.

    In Kafka it is the controller itself; its session, and with it an earlier claim, ended when it
    went down.
    """
    only(event, {"event", "broker", "broker_epoch"}, "elect_controller")
    _register(world, event)
    world.store.remove(CONTROLLER_PATH)
    claim = claim_controller(cast(ZkSession, world.store), CONTROLLER_ID, steal=False, now_ms=0)
    assert isinstance(claim, ControllerClaim), f"the claim failed: {claim}"
    write = feature_write(world.store.get(FEATURE_PATH), world.protocol)
    if write is not None:
        world.store.multi([Check(CONTROLLER_EPOCH_PATH, claim.epoch_zk_version), write])
    _load(world, claim)


def controller_failover(world: World, event: dict[str, Any]) -> None:
    """A new claim, and all is read again; with a broker epoch that broker comes back too."""
    only(event, {"event", "broker", "broker_epoch", "new_controller"}, "controller_failover")
    if "broker_epoch" in event:
        _register(world, {"broker": world.controller_broker, **event})
    session = cast(ZkSession, world.store)
    _load(world, claim_controller(session, CONTROLLER_ID, steal=True, now_ms=0))


def _load(world: World, claim: object) -> None:
    """Say what is read after a claim: the brokers, every topic, and that this is all."""
    assert isinstance(claim, ControllerClaim), f"the claim failed: {claim}"
    world.resigned = None
    world.happen(
        "controller_elected",
        controller_id=claim.controller_id,
        epoch=claim.epoch,
        epoch_zk_version=claim.epoch_zk_version,
        endpoints=[],
        config=world.config,
    )
    registered = [_registration(world, broker) for broker in sorted(world.brokers)]
    world.happen("broker_registrations_changed", registered=registered)
    topics = topics_of(world.store)
    for topic in topics:
        world.happen("topic_observed", topic, **world.topic_now(topic))
    marked = f"{DELETE_TOPICS_PATH}/"
    for path in sorted(world.store.nodes):
        if path.startswith(marked):
            topic = path.removeprefix(marked)
            world.happen("topic_deletion_requested", topic, topic=topic)
    block = world.store.get("/latest_producer_id_block")
    world.happen(
        "producer_id_block_observed",
        block_end=-1 if block is None else int(orjson.loads(block.data)["block_end"]),
        zk_version=-1 if block is None else block.version,
    )
    world.happen("resync_completed", topics=len(topics))
    settle(world)


def controller_taken_over(world: World, event: dict[str, Any]) -> None:
    """Somebody else registers /controller and counts the epoch up; we are not told."""
    only(event, {"event", "new_controller"}, "controller_taken_over")
    epoch = int(world.store.nodes[CONTROLLER_EPOCH_PATH].data)
    world.store.change(CONTROLLER_PATH, controller_bytes(event["new_controller"], 0))
    world.store.change(CONTROLLER_EPOCH_PATH, epoch_bytes(epoch + 1))


def controller_shutdown(world: World, event: dict[str, Any]) -> None:
    """We give the role up of our own accord."""
    only(event, {"event"}, "controller_shutdown")
    world.store.remove(CONTROLLER_PATH)
    world.happen("controller_resigned", reason="the controller is shutting down")
    settle(world)


def pause_event_loop(world: World, event: dict[str, Any]) -> None:
    """No batch runs from now on; the log grows."""
    only(event, {"event"}, "pause_event_loop")
    world.paused = True


def resume_event_loop(world: World, event: dict[str, Any]) -> None:
    """Batches run again: the first holds all that has been logged meanwhile."""
    only(event, {"event"}, "resume_event_loop")
    world.paused = False
    settle(world)


def controlled_shutdown(world: World, event: dict[str, Any]) -> None:
    """A broker asks to be relieved of its leaders."""
    only(event, {"event", "broker", "broker_epoch", "version"}, "controlled_shutdown")
    world.remaining = []
    world.happen(
        "controlled_shutdown_requested",
        request_id="controlled_shutdown",
        broker_id=event["broker"],
        broker_epoch=event["broker_epoch"],
        version=event.get("version", 3),
    )
    settle(world)


def allocate_producer_ids(world: World, event: dict[str, Any]) -> None:
    """A broker asks for a block of producer ids."""
    only(event, {"event", "broker", "broker_epoch"}, "allocate_producer_ids")
    world.happen(
        "producer_ids_requested",
        request_id="allocate_producer_ids",
        broker_id=event["broker"],
        broker_epoch=event["broker_epoch"],
    )
    settle(world)


def auto_rebalance_tick(world: World, event: dict[str, Any]) -> None:
    """The rebalance timer comes due, if one is armed."""
    only(event, {"event"}, "auto_rebalance_tick")
    deadline_ms = world.timers.get(LEADER_REBALANCE_TIMER)
    if deadline_ms is not None:
        world.happen("timer_due", timer=LEADER_REBALANCE_TIMER, deadline_ms=deadline_ms)
    settle(world)


def config_change(world: World, event: dict[str, Any]) -> None:
    """A topic's or the cluster's unclean election setting changes."""
    only(event, {"event", "topic", "config"}, "config_change")
    known = {"unclean.leader.election.enable"}
    if set(event["config"]) - known:
        raise NotUnderstoodError(f"config_change of {sorted(set(event['config']) - known)}")
    value = event["config"]["unclean.leader.election.enable"]
    unclean = None if value is None else str(value).lower() == "true"
    if "topic" in event:
        topic = event["topic"]
        world.happen("topic_config_changed", topic, topic=topic, unclean=unclean)
    else:
        changed = {"unclean.leader.election.enable": bool(unclean)}
        world.happen("cluster_config_changed", config=changed)
    settle(world)


def log_dir_failure(world: World, event: dict[str, Any]) -> None:
    """A broker announces a failed disk, and answers LeaderAndIsr for what was on it accordingly."""
    only(event, {"event", "broker", "partitions", "topic", "partition"}, "log_dir_failure")
    broker = event["broker"]
    partitions = [names.topic_partition(name) for name in event.get("partitions", [])]
    if "topic" in event:
        partitions.append((event["topic"], event["partition"]))
    if not partitions:
        raise NotUnderstoodError("log_dir_failure does not say which partitions were on the disk")
    world.failed_disks |= {(broker, *partition) for partition in partitions}
    world.happen("log_dir_failure_notified", broker_ids=[broker])
    settle(world)


def leader_and_isr_response(world: World, event: dict[str, Any]) -> None:
    """A broker answers LeaderAndIsr with an error name per partition."""
    only(event, {"event", "broker", "broker_epoch", "errors"}, "leader_and_isr_response")
    for name, error in event["errors"].items():
        topic, partition = names.topic_partition(name)
        world.happen(
            "leader_and_isr_answered",
            topic,
            broker_id=event["broker"],
            broker_epoch=event.get("broker_epoch", world.brokers[event["broker"]][0]),
            topic=topic,
            partitions=[partition],
            errors=[int(ProtocolError[error])],
        )
    settle(world)
