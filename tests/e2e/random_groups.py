"""Consumer groups beside random operations: what they were acknowledged is still committed when all
is over, whoever coordinated them meanwhile, and what was read of the topic of offsets stands there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from streaming.internal_topics import GROUP_TOPIC
from tests.e2e.group_clients import TOPIC, JavaClient, Member, PythonClient, RdClient
from tests.e2e.group_stage import PARTITIONS, Writer, configure, lost_commits
from tests.e2e.offsets_reading import PATIENCE_S, Following, read_all
from tests.e2e.random_checks import wait_until_none
from tests.e2e.random_stage import KEEPING_RECORDS, Stage


class Groups:
    """Members of kafka-python, librdkafka and Kafka's own consumer that commit all the time."""

    def __init__(self, stage: Stage) -> None:
        """Make their topic and let them join."""
        self._brokers = brokers = stage.demo.embedded.bootstrap_servers
        stage.create_replicated_topic(TOPIC, PARTITIONS)
        self._writer = Writer(brokers)
        self._writer.start()
        java = JavaClient(brokers, "mixed", stage.demo.folders.root.parent)
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
            configure(stage.session, topic, KEEPING_RECORDS)
        self._following = Following(brokers, stage.demo.folders.root.parent / "following.log")
        self._following.start()

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
        """Return the acknowledged commits that are not there, and records of the topic of offsets
        that were read and are others now, or were not read.
        """
        return [*self._lost_commits(), *self._lost_records()]

    def _lost_records(self) -> list[str]:
        before = dict(self._following.read)
        now, read = read_all(self._brokers), self._following.read
        wait_until_none(lambda: [str(at) for at in now if at not in read], PATIENCE_S)
        others = [at for at in sorted({*now, *before}) if now.get(at) != read.get(at)]
        faults = [f"{GROUP_TOPIC}: {error}" for error in self._following.errors] if others else []
        unread = [at for at in others if at not in read]
        return [
            *faults,
            *_unread(unread),
            *(
                f"record {at} of {GROUP_TOPIC}: read {read[at]}, found {now.get(at)}"
                for at in others
                if at in read
            ),
        ]

    def _lost_commits(self) -> list[str]:
        return [
            f"commit of {member.group}, partition {one}: acked {acked}, found {found}"
            for member in self._members
            for one, (acked, found) in lost_commits(self._brokers, member).items()
        ]

    def stop(self) -> None:
        """Let members and writer end."""
        for member in self._members:
            member.stop()
        self._writer.stop()
        self._following.stop()

    def __str__(self) -> str:
        """Tell how often each member committed, and of readers that waited for themselves."""
        members = ", ".join(
            f"{one.group} {len(one.acked_s)} ({len(one.failures)} failed)" for one in self._members
        )
        return f"commits: {members}; readers of {GROUP_TOPIC} that froze: {self._following.frozen}"


def _unread(records: Sequence[tuple[int, int]]) -> list[str]:
    """Tell of each partition what was not read."""
    offsets: dict[int, list[int]] = {}
    for partition, offset in records:
        offsets.setdefault(partition, []).append(offset)
    return [
        f"{len(found)} records of {GROUP_TOPIC}-{partition} were not read,"
        f" from {min(found)} to {max(found)}"
        for partition, found in offsets.items()
    ]
