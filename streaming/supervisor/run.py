"""`helmstream run`: control a cluster until told to stop."""

from __future__ import annotations

import threading
from pathlib import Path

from rich.console import Console

from streaming.embedded.java import find_java
from streaming.errors import ConfigurationError
from streaming.front.login_classes import check_login_classes
from streaming.front.principal_builder import check_principal_builder
from streaming.front.rights import check_authorizer
from streaming.front.topic_policy import check_topic_policy
from streaming.log.writer_lock import WriterLock
from streaming.paths import DataDir
from streaming.preflight import check_bindable, check_log_clusters, check_zookeeper
from streaming.process.stop_signals import on_stop_signal
from streaming.security.credentials import check_credentials
from streaming.security.java_own_login import check_own_login
from streaming.security.tls import check_tls
from streaming.setting_checks import gateway_ports
from streaming.settings import Settings
from streaming.spark.local_fs import fetch_local_fs_jar
from streaming.starting.job_lock import JobLock
from streaming.supervisor.embedded import EmbeddedCluster
from streaming.supervisor.log_cluster import check_log_cluster
from streaming.supervisor.processes import Supervisor


def run(settings: Settings, config: list[str], console: Console, *, standby: bool = False) -> None:
    """Run front and job, with an embedded cluster when no ZooKeeper is given, until a signal comes.

    config: the --config and --set options for the child processes; standby: wait while others are
    front or job of the data folder. Raises JobLocked, LogLocked, JavaMissing, JavaTooOld,
    PortTaken, NoZooKeeper, ConfigurationError before anything starts, ArtifactsUnavailable,
    ChildDied, NotReady, ServerPortTaken when the embedded cluster does not come up, HopelessRole
    when front or job cannot run as configured.
    """
    if standby and not settings.zookeeper_connect:
        raise ConfigurationError("a standby needs zookeeper.connect: the cluster to control")
    if not standby:
        check_folder_free(settings)
    find_java()
    check_tls(settings)
    check_credentials(settings)
    check_own_login(settings)
    check_topic_policy(settings)
    check_authorizer(settings)
    check_login_classes(settings)
    check_principal_builder(settings)
    check_log_clusters(settings.event_log_url, settings.decision_stream_url)
    if not standby:  # the one that it waits for may have the ports
        for port in gateway_ports(settings, len(settings.gateway_listener_names) or 1):
            check_bindable(settings.gateway_host, port)
        if settings.metrics_port:
            check_bindable(settings.metrics_host, settings.metrics_port, "metrics")
    if settings.zookeeper_connect:
        check_zookeeper(settings.zookeeper_connect, settings.zookeeper_connection_timeout_ms)
        check_log_cluster(settings)
    stop = threading.Event()
    on_stop_signal(lambda _: stop.set())
    data_dir = settings.data_dir
    cluster = None if settings.zookeeper_connect else _embedded(settings, data_dir, console)
    supervisor = Supervisor(data_dir, [*config, *_options(cluster)], standby)
    try:
        supervisor.start()
        if cluster is not None:
            cluster.start_brokers(lambda id_: console.print(f"broker {id_} is up"))
            console.print(f"bootstrap servers: {','.join(cluster.bootstrap_servers)}")
        console.print(
            f"helmstream {'stands by' if standby else 'is starting'} in {data_dir};"
            " helmstream status shows what it does"
        )
        supervisor.watch(until=stop.is_set)
    finally:
        try:
            console.print("stopping")
        finally:  # who reads that may be gone, as `| tee` is after a Ctrl-C
            supervisor.stop()
            if cluster is not None:
                cluster.stop()


def check_folder_free(settings: Settings) -> None:
    """Raise JobLocked or LogLocked, naming the process, when a data folder has a job or a front."""
    folders = DataDir(settings.data_dir, settings.event_log_url)
    with JobLock(folders.job_lock) as lock:
        lock.acquire()
        WriterLock(folders.events).close()


def _embedded(settings: Settings, data_dir: Path, console: Console) -> EmbeddedCluster:
    console.print("no zookeeper.connect: starting an embedded ZooKeeper and brokers")
    fetch_local_fs_jar()
    return EmbeddedCluster(
        DataDir(data_dir).embedded, settings.embedded_brokers, settings.embedded_kafka_version
    )


def _options(cluster: EmbeddedCluster | None) -> list[str]:
    return [] if cluster is None else [f"--set={one}" for one in cluster.settings()]
