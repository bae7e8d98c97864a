"""Consumer groups beside random operations: what they were acknowledged is still committed when all
is over, whoever coordinated them meanwhile.
"""

from __future__ import annotations

import time
from typing import Any

from kafka import KafkaAdminClient

from streaming.demo.cluster import DemoCluster
from streaming.internal_topics import GROUP_TOPIC
from streaming.zk.client import ZkSession
from tests.e2e.group_clients import TOPIC, JavaClient, Member, PythonClient, RdClient
from tests.e2e.group_stage import PARTITIONS, Writer, committed, configure
from tests.e2e.random_stage import UNCLEAN

_KEEPING_RECORDS = {"min.insync.replicas": "2", UNCLEAN: "false"}
_REPLICAS = 3


class Groups:
    """Members of kafka-python, librdkafka and Kafka's own consumer that commit all the time."""

    def __init__(self, demo: DemoCluster, session: ZkSession) -> None:
        """Make their topic and let them join; raises KafkaError."""
        self._brokers = brokers = demo.embedded.bootstrap_servers
        admin: Any = KafkaAdminClient(bootstrap_servers=brokers)
        wanted = {"num_partitions": PARTITIONS, "replication_factor": _REPLICAS}
        admin.create_topics({TOPIC: wanted})
        admin.close()
        self._writer = Writer(brokers)
        self._writer.start()
        java = JavaClient(brokers, "mixed", demo.folders.root.parent)
        self._members = [
            Member("python", PythonClient(brokers, "python")),
            Member("python", PythonClient(brokers, "python")),
            Member("mixed", RdClient(brokers, "mixed")),
            Member("mixed", java),
        ]
        for member in self._members:
            member.start()
            member.goes_on()
        # The cluster's default will change; neither records nor commits may be lost with it.
        for topic in (TOPIC, GROUP_TOPIC):
            configure(session, topic, _KEEPING_RECORDS)

    def silent(self, since_s: float) -> list[str]:
        """Return the members that were acknowledged no commit after a time.monotonic()."""
        found = []
        for member in self._members:
            if member.error is not None:
                found.append(f"a {member.name} ended: {member.error!r}")
            elif member.acked_s[-1] < since_s:
                ago_s = time.monotonic() - member.acked_s[-1]
                last = member.failures[-1:]
                found.append(f"a {member.name} has had no commit for {ago_s:.0f} s: {last}")
        return found

    def lost(self) -> list[str]:
        """Return the acknowledged commits that are not there."""
        lost = []
        for member in self._members:
            acked = dict(member.acked)  # what is acked later is not asked for
            found = committed(self._brokers, member.group)
            lost += [
                f"commit of {member.group}, partition {one}: acked {offset}, found {found[one]}"
                for one, offset in acked.items()
                if found[one] < offset
            ]
        return lost

    def stop(self) -> None:
        """Let members and writer end."""
        for thread in (*self._members, self._writer):
            thread.stop()

    def __str__(self) -> str:
        """Tell how often each member committed."""
        return "commits: " + ", ".join(
            f"{one.group} {len(one.acked_s)} ({len(one.failures)} failed)" for one in self._members
        )
