"""The status as metrics: under Kafka's names what Kafka's controller has, under ours the rest.

Kafka's are rendered as exporters of JMX beans usually do, so that boards and alerts go on to work.
Like a broker that is not the controller, we show 0 for all of them while another one is. What is
not known has no metric. docs/status.md lists all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from state.decisions import ELECTIONS, Rule
from state.groups.states import GroupState
from streaming.front.controller_role import RolePhase

Status = Mapping[str, Any]
Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily

CONTROLLER = "kafka_controller_kafkacontroller_"
CHANNELS = "kafka_controller_controllerchannelmanager_"
GROUPS = "kafka_coordinator_group_groupmetadatamanager_"
COORDINATOR = "kafka_server_group_coordinator_metrics_"

COUNTERS = {
    "broken_admin_requests": "Requests in znodes under /admin that cannot be read",
    "broken_broker_znodes": "Registrations of brokers that cannot be read",
    "broken_configs": "Configurations of topics or brokers that cannot be read",
    "broken_delegation_tokens": "Delegation tokens in ZooKeeper that cannot be read",
    "broken_group_changes": "Decisions about groups that could not be folded",
    "broken_notifications": "Notifications in ZooKeeper that cannot be read",
    "broken_partition_states": "State znodes of partitions that cannot be read",
    "broken_producer_id_blocks": "Reads of a block of producer ids that cannot be understood",
    "broken_topic_znodes": "Znodes of topics that cannot be read",
    "controller_claims": "Times the controller role was taken",
    "controller_losses": "Times the controller role was lost, or could not be taken",
    "failed_group_loads": "Tries to load a partition of __consumer_offsets that failed",
    "late_replies": "Decisions whose request was given up before",
    "refused_shutdowns": "Requests for a controlled shutdown that the safety check refused",
    "rejected_writes": "Writes that ZooKeeper does not take: no permission, or too large",
    "reply_timeouts": "Requests that no decision answered within request.timeout.ms",
    "set_aside_events": "Events that could not be folded",
    "unreadable_group_records": "Records of __consumer_offsets that cannot be read",
    "unwritable_group_records": "Changes of groups that could not be written",
}
"""What each counter of the status counts; one that is not here is exported all the same."""

_REQUESTS = "requests_"


def families(status: Status) -> Iterator[Family]:
    """Yield the metrics of a status as Front.status returns it."""
    yield from _kafka_controller(status)
    yield from _kafka_groups(status["groups"])
    yield from _role(status)
    yield from _log_and_job(status["event_log"], status["job"])
    yield from _cluster(status)
    yield from _gateway(status["gateway"])
    yield from _certificate(status["certificate_ends_ms"])
    for name in sorted({*COUNTERS, *status["counters"]}):
        said = COUNTERS.get(name, name.replace("_", " ").capitalize())
        yield _counter(f"helmstream_{name}", said, status["counters"].get(name, 0))


def _gauge(name: str, said: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, said, value=value)


def _counter(name: str, said: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, said, value=value)


def _kafka_controller(status: Status) -> Iterator[Family]:
    active = status["epoch"] is not None
    topics, deleting = status["topics"], status["deleting"]
    known = {**status, "all_topics": None if topics is None else topics + len(deleting)}
    yield _gauge(f"{CONTROLLER}activecontrollercount", "1 while /controller is ours", int(active))
    for name, said, value in (
        ("offlinepartitionscount", "Partitions without a live leader", "offline_partitions"),
        (
            "preferredreplicaimbalancecount",
            "Partitions not led by their preferred replica",
            "imbalanced",
        ),
        ("globaltopiccount", "Topics, those that are being deleted too", "all_topics"),
        ("globalpartitioncount", "Partitions", "partitions"),
        ("topicstodeletecount", "Topics to be deleted", "topics_to_delete"),
        ("activebrokercount", "Registered brokers", "brokers"),
    ):
        if known[value] is not None:
            yield _gauge(CONTROLLER + name, said, _count(known[value]) if active else 0)
    yield _gauge(
        "kafka_controller_controllereventmanager_eventqueuesize",
        "Events that wait to be decided",
        status["job"]["lag"] if active else 0,
    )
    yield _counter(
        "kafka_controller_controllerstats_uncleanleaderelections",
        "Partitions that got a leader from outside the ISR",
        status["elections"].get(Rule.UNCLEAN_ELECTED.name.lower(), 0),
    )
    if status["job"]["pid"] is not None or not active:
        yield from _queues(status["queue_lengths"] if active else {})


def _count(value: Any) -> float:
    """Return a number as it is, and the length of a list."""
    return len(value) if isinstance(value, list) else float(value)


def _queues(lengths: Mapping[str, int]) -> Iterator[Family]:
    said = "Requests to brokers that are not answered"
    yield _gauge(f"{CHANNELS}totalqueuesize", said, sum(lengths.values()))
    by_broker = GaugeMetricFamily(f"{CHANNELS}queuesize", said, labels=["broker_id"])
    for broker, length in sorted(lengths.items()):
        by_broker.add_metric([str(broker)], length)
    yield by_broker


def _kafka_groups(groups: Status) -> Iterator[Family]:
    if not groups["enabled"]:
        return  # brokers coordinate them, and say how many there are
    yield _gauge(f"{GROUPS}numgroups", "Consumer groups", groups["groups"])
    for state in GroupState:
        count = groups["states"].get(state, 0)
        yield _gauge(
            f"{GROUPS}numgroups{state.lower()}", f"Consumer groups in state {state}", count
        )
    for name, said, value in (
        (
            "group_completed_rebalance_count",
            "Rebalances that ended with an assignment",
            "completed_rebalances",
        ),
        ("offset_expiration_count", "Offsets that expired", "expired_offsets"),
    ):
        yield _gauge(COORDINATOR + name, said, groups[value])
    yield _counter("helmstream_group_rebalances", "Rebalances that began", groups["rebalances"])
    yield HistogramMetricFamily(
        "helmstream_group_rebalance_seconds",
        "From the beginning of a rebalance until its assignment was stored",
        buckets=[(_bound(most), count) for most, count in groups["rebalance_seconds"]],
        sum_value=groups["rebalance_seconds_sum"],
    )
    removed = CounterMetricFamily(
        "helmstream_group_members_removed", "Members that are gone", labels=["reason"]
    )
    for reason, count in groups["members_removed"].items():
        removed.add_metric([reason], count)
    yield removed


def _bound(most_s: float | None) -> str:
    return "+Inf" if most_s is None else str(most_s)


def _role(status: Status) -> Iterator[Family]:
    role = GaugeMetricFamily("helmstream_role", "1 at the present role", labels=["role"])
    for phase in RolePhase:
        role.add_metric([phase], int(status["role"] == phase))
    yield role
    yield _gauge("helmstream_paused", "1 while an operator has paused decisions", status["paused"])
    yield _gauge("helmstream_in_doubt", "1 while ZooKeeper is out of reach", status["in_doubt"])
    if status["epoch"] is not None:
        yield _gauge("helmstream_controller_epoch", "Epoch of the present claim", status["epoch"])


def _log_and_job(log: Status, job: Status) -> Iterator[Family]:
    yield _gauge("helmstream_log_start_offset", "Oldest event kept", log["start_offset"])
    yield _gauge("helmstream_log_end_offset", "One past the newest event", log["end_offset"])
    yield _gauge("helmstream_job_connected", "1 while a job is connected", job["pid"] is not None)
    completed = job["completed_offset"]
    yield _gauge("helmstream_completed_offset", "One past the newest folded event", completed)
    yield _gauge("helmstream_log_lag", "Events that wait to be folded", job["lag"])
    yield _gauge(
        "helmstream_oldest_waiting_event_age_seconds",
        "For how long the oldest event that is not folded has waited",
        job["oldest_waiting_ms"] / 1000,
    )
    if job["last_batch_time_ms"] is not None:
        yield _gauge(
            "helmstream_last_batch_timestamp_seconds",
            "When the last micro-batch was completed",
            job["last_batch_time_ms"] / 1000,
        )
    yield _counter("helmstream_batches", "Micro-batches that were completed", job["batches"])
    yield _counter("helmstream_decisions", "Decisions", job["decisions"])
    yield _counter("helmstream_conflicts", "Writes that met another znode", job["conflicts"])
    said = "Micro-batches that wrote under an epoch that was over"
    yield _counter("helmstream_fenced_batches", said, job["fenced_batches"])


def _cluster(status: Status) -> Iterator[Family]:
    for name, said, value in (
        ("leaderless_partitions", "Partitions that have no leader at all", "leaderless"),
        ("under_replicated_partitions", "Partitions with replicas not in sync", "under_replicated"),
        ("deleting_topics", "Topics whose deletion has started", "deleting"),
        ("untold_brokers", "Brokers without the controller's listener", "untold_brokers"),
        (
            "led_by_deprioritized",
            "Partitions led by brokers of leader.deprioritized.list",
            "led_by_deprioritized",
        ),
        ("waiting_for_log_ends", "Partitions that wait for log ends", "waiting_for_log_ends"),
    ):
        if status[value] is not None:
            yield _gauge(f"helmstream_{name}", said, _count(status[value]))
    elections = CounterMetricFamily(
        "helmstream_leader_elections", "Partitions that got a leader", labels=["rule"]
    )
    for rule in ELECTIONS:
        name = rule.name.lower()
        elections.add_metric([name], status["elections"].get(name, 0))
    yield elections
    confirmed = GaugeMetricFamily(
        "helmstream_broker_confirmed_offset",
        "One past the newest event of which a broker has answered everything",
        labels=["broker_id"],
    )
    for broker, told in sorted(status["delivery"].items()):
        confirmed.add_metric([broker], told["confirmed"])
    yield confirmed
    said = "Requests that wait for a decision"
    yield _gauge("helmstream_waiting_requests", said, status["waiting_requests"])


def _certificate(ends_ms: int | None) -> Iterator[Family]:
    if ends_ms is not None:
        said = "When the certificate that clients are shown ends"
        yield _gauge("helmstream_certificate_end_timestamp_seconds", said, ends_ms / 1000)


def _gateway(counters: Mapping[str, int]) -> Iterator[Family]:
    requests = CounterMetricFamily(
        "helmstream_gateway_requests", "Requests that were served", labels=["api"]
    )
    for name, value in sorted(counters.items()):
        if name.startswith(_REQUESTS):
            requests.add_metric([name.removeprefix(_REQUESTS)], value)
        elif name == "connections_open":
            yield _gauge("helmstream_gateway_connections_open", "Open connections", value)
        else:
            said = name.replace("_", " ").capitalize()
            yield _counter(f"helmstream_gateway_{name}", said, value)
    yield requests
