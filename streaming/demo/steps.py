"""The story's table: what is done to the cluster, and what ZooKeeper and brokers must then show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streaming.demo.checks import (
    all_in_sync,
    batches_went_on,
    brokers_agree,
    leaders_only_on,
    running_are_registered,
    topic_is_led,
)
from streaming.demo.cluster import BROKERS, PARTITIONS, TOPIC, DemoCluster
from streaming.demo.journal import IsEvent
from streaming.demo.story import Look, NotSeen, Step
from streaming.supervisor.processes import JOB

OURS = 1000
CRASHED = 3
SHUT_DOWN = 2
TOPIC_DURING_CRASH = "asked-while-the-job-was-dead"

_CONTROLLED_SHUTDOWN_LIMIT_S = 30.0
_SHUTDOWN_BEGINS = "Starting controlled shutdown"
# As brokers of 3.x and of 2.x say it.
_SHUTDOWN_ANSWERED = ("Controlled shutdown request returned success", "Controlled shutdown succeed")
_SHUTDOWN_UNCLEAN = "unclean shutdown"


def start_everything(demo: DemoCluster) -> None:
    """Start front, job and brokers side by side."""
    demo.start_ours()
    demo.embedded.start_brokers()


def control_is_ours(look: Look) -> str | None:
    """Wait for /controller to name us under a new epoch, and for every broker to say so."""
    now = look.now
    if now.controller_id != OURS:
        return f"/controller names {now.controller_id}"
    if now.controller_epoch <= look.before.controller_epoch:
        return f"the controller epoch is still {now.controller_epoch}"
    return running_are_registered(look) or brokers_agree(look)


def create_and_produce(demo: DemoCluster) -> None:
    """Create the topic through the gateway; then the clients start."""
    demo.create_topic(TOPIC, PARTITIONS)
    demo.start_traffic()


def topic_is_used(look: Look) -> str | None:
    """Wait for leaders and full ISRs in ZooKeeper and brokers, and for records to flow."""
    missing = topic_is_led(look, TOPIC, PARTITIONS) or all_in_sync(look) or brokers_agree(look)
    if missing is None and not (look.demo.consumer and look.demo.consumer.values):
        missing = "nothing was consumed yet"
    return missing


def crash_a_broker(demo: DemoCluster) -> None:
    """SIGKILL a broker; ZooKeeper notices when its session times out."""
    demo.broker(CRASHED).kill()


def leaders_left_the_crashed(look: Look) -> str | None:
    """Wait until the broker is gone and every partition is led by one that is not."""
    if CRASHED in look.now.brokers:
        return f"broker {CRASHED} is still registered"
    return leaders_only_on(look, {1, 2, 3} - {CRASHED}) or brokers_agree(look)


def crashed_returns(demo: DemoCluster) -> None:
    """Start the killed broker again, on its old data."""
    demo.broker(CRASHED).start()


def returned_is_in_sync(look: Look) -> str | None:
    """Wait until all brokers are registered and every ISR is complete."""
    return running_are_registered(look) or all_in_sync(look) or brokers_agree(look)


def shut_a_broker_down(demo: DemoCluster) -> None:
    """SIGTERM a broker, which asks the controller to move its leaders before it ends."""
    if not demo.broker(SHUT_DOWN).terminate(_CONTROLLED_SHUTDOWN_LIMIT_S):
        raise NotSeen(
            f"broker {SHUT_DOWN} did not end by itself in {_CONTROLLED_SHUTDOWN_LIMIT_S:g} s"
        )


def shutdown_was_controlled(look: Look) -> str | None:
    """Wait until nothing is led by the broker; its log must show one answered request."""
    if SHUT_DOWN in look.now.brokers:
        return f"broker {SHUT_DOWN} is still registered"
    log = look.demo.broker(SHUT_DOWN).log_path.read_text(encoding="utf-8", errors="replace")
    _, begun, after = log.rpartition(_SHUTDOWN_BEGINS)
    answered = any(words in after for words in _SHUTDOWN_ANSWERED)
    if not begun or _SHUTDOWN_UNCLEAN in after or not answered:
        return f"broker {SHUT_DOWN}'s log does not tell of a controlled shutdown"
    return leaders_only_on(look, {1, 2, 3} - {SHUT_DOWN}) or brokers_agree(look)


def shut_down_returns(demo: DemoCluster) -> None:
    """Start the broker again."""
    demo.broker(SHUT_DOWN).start()


def crash_the_job(demo: DemoCluster) -> None:
    """SIGKILL the job, and ask for something that only a job can decide."""
    demo.supervisor.kill(JOB)
    demo.create_topic(TOPIC_DURING_CRASH)


def job_went_on(look: Look) -> str | None:
    """Wait for the decision; control must never have changed hands, not even for a moment."""
    now, before = look.now, look.before
    if (now.controller_czxid, now.controller_epoch) != (
        before.controller_czxid,
        before.controller_epoch,
    ):
        return f"the controller changed: {now.controller_id} with epoch {now.controller_epoch}"
    return topic_is_led(look, TOPIC_DURING_CRASH, 1) or batches_went_on(look) or brokers_agree(look)


def crash_all_of_ours(demo: DemoCluster) -> None:
    """SIGKILL front and job, with nobody left to start them again."""
    demo.kill_ours()


def a_broker_controls(look: Look) -> str | None:
    """Wait until a broker's built-in controller has taken over."""
    now = look.now
    is_brokers = now.controller_id in look.demo.embedded.brokers
    if not is_brokers or now.controller_epoch <= look.before.controller_epoch:
        return f"/controller names {now.controller_id}, epoch {now.controller_epoch}"
    return brokers_agree(look)


def start_ours_again(demo: DemoCluster) -> None:
    """Start front and job on the logs and the checkpoint they left."""
    demo.start_ours()


def control_is_ours_again(look: Look) -> str | None:
    """As the first time, and by the old checkpoint."""
    return control_is_ours(look) or batches_went_on(look) or all_in_sync(look)


def event(kind: str, **has: int) -> IsEvent:
    """Return what recognises an event by kind, and by an id in one of its lists."""

    def matches(found: str, payload: Mapping[str, Any]) -> bool:
        return found == kind and all(_names(payload[name], id_) for name, id_ in has.items())

    return matches


def _names(entries: list[Any], broker_id: int) -> bool:
    ids = [entry["id"] if isinstance(entry, dict) else entry for entry in entries]
    return broker_id in ids


_BROKERS_CHANGED = "broker_registrations_changed"

STORY: tuple[Step, ...] = (
    Step(
        "the job claims the controller role",
        f"/controller names {OURS}, all brokers obey it",
        start_everything,
        control_is_ours,
        limit_s=90,
        event=event("controller_elected"),
    ),
    Step(
        "a topic is created through the gateway",
        f"{PARTITIONS} partitions with leaders and {BROKERS} replicas in sync, records flow",
        create_and_produce,
        topic_is_used,
        limit_s=30,
        event=event("create_topic_requested"),
    ),
    Step(
        f"kill -9 broker {CRASHED}",
        f"no partition is led by {CRASHED}, records flow",
        crash_a_broker,
        leaders_left_the_crashed,
        limit_s=30,
        event=event(_BROKERS_CHANGED, unregistered=CRASHED),
    ),
    Step(
        f"broker {CRASHED} returns",
        "it is in every ISR again",
        crashed_returns,
        returned_is_in_sync,
        limit_s=60,
        event=event(_BROKERS_CHANGED, registered=CRASHED),
    ),
    Step(
        f"kill -TERM broker {SHUT_DOWN}",
        "its shutdown is controlled: leaders move first",
        shut_a_broker_down,
        shutdown_was_controlled,
        limit_s=30,
        event=event("controlled_shutdown_requested"),
    ),
    Step(
        f"broker {SHUT_DOWN} returns",
        "it is in every ISR again",
        shut_down_returns,
        returned_is_in_sync,
        limit_s=60,
        event=event(_BROKERS_CHANGED, registered=SHUT_DOWN),
    ),
    Step(
        "kill -9 the Spark job",
        "it goes on from its checkpoint, same controller, same epoch",
        crash_the_job,
        job_went_on,
        limit_s=60,
        event=event("create_topic_requested"),
    ),
    Step(
        "kill -9 everything of ours",
        "a broker's built-in controller takes over",
        crash_all_of_ours,
        lambda look: a_broker_controls(look) or all_in_sync(look),
        limit_s=45,
    ),
    Step(
        "we start again",
        "control comes back, decided from the old checkpoint",
        start_ours_again,
        control_is_ours_again,
        limit_s=90,
        event=event("controller_elected"),
    ),
)
"""What `helmstream demo` shows, in order."""
