"""Checks that several steps share: each returns what is still missing, None when nothing is."""

from __future__ import annotations

from collections.abc import Collection

from streaming.demo.cluster import REPLICATION_FACTOR
from streaming.demo.story import Look


def running_are_registered(look: Look) -> str | None:
    """Every running broker is registered in ZooKeeper."""
    brokers = look.demo.embedded.brokers.items()
    absent = {id_ for id_, broker in brokers if broker.running} - look.now.brokers.keys()
    return f"brokers {sorted(absent)} are not registered" if absent else None


def topic_is_led(look: Look, topic: str, partitions: int) -> str | None:
    """Every partition of a topic has a leader in ZooKeeper."""
    found = look.now.of_topic(topic)
    led = [number for number, seen in found.items() if seen is not None and seen.leader >= 0]
    return None if len(led) == partitions else f"topic {topic} has leaders for {sorted(led)} only"


def leaders_only_on(look: Look, broker_ids: Collection[int]) -> str | None:
    """Every partition is led by one of these brokers, and their ISRs have no others."""
    for (topic, number), seen in look.now.partitions.items():
        if seen is None or seen.leader not in broker_ids:
            return f"{topic}-{number} is led by {'nobody' if seen is None else seen.leader}"
        if not set(seen.isr) <= set(broker_ids):
            return f"the ISR of {topic}-{number} is {list(seen.isr)}"
    return None


def all_in_sync(look: Look) -> str | None:
    """Every partition has a leader and a complete ISR."""
    for (topic, number), seen in look.now.partitions.items():
        if seen is None or seen.leader < 0:
            return f"{topic}-{number} has no leader"
        if len(seen.isr) < REPLICATION_FACTOR:
            return f"the ISR of {topic}-{number} is {list(seen.isr)}"
    return None


def brokers_agree(look: Look) -> str | None:
    """Every running broker tells clients of the controller and the leaders that ZooKeeper has."""
    leaders = {key: -1 if one is None else one.leader for key, one in look.now.partitions.items()}
    for broker_id, view in look.demo.broker_views().items():
        if view is None:
            return f"broker {broker_id} does not answer"
        if view.controller_id != look.now.controller_id:
            return f"broker {broker_id} takes {view.controller_id} for the controller"
        if view.leaders != leaders:
            return f"broker {broker_id} knows other leaders than ZooKeeper"
    return None


def batches_went_on(look: Look) -> str | None:
    """The job has completed batches since the step began, and went on from those before."""
    ends = look.demo.journal.batch_ends(look.mark)
    if not ends:
        return "no batch was completed since"
    first = min(ends)
    # The last batch of a killed job may not have been noted as done: then it runs again.
    if first < look.last_end_before:
        return f"a batch ended at event {first} after one that ended at {look.last_end_before}"
    return None
