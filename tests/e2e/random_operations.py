"""Random operations on three real brokers while records flow: nothing acked is lost, all ends well.

    python -m tests.e2e.random_operations --seed 7 --operations 200

The seed decides on the operations; operations.txt in the folder tells them with what came of each.
With --groups we coordinate the consumer groups too, and __consumer_offsets is moved as well; with
--zookeeper it goes away too, and decisions are paused; with --ensemble it has three servers, one of
which goes away; with --standby a second helmstream waits for its turn, and who is front or job
stands still, too; with --log-cluster our logs are in topics of another cluster, which goes away as
well. With --protocol and --versions brokers are of the first
version, and speak that inter-broker protocol; where there are several, one that was stopped returns
with any of them.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from streaming.demo.cluster import PARTITIONS, TOPIC, DemoCluster
from streaming.demo.steps import start_everything
from streaming.demo.verdict import Verdict
from streaming.internal_topics import GROUP_TOPIC
from streaming.supervisor.embedded import SESSION_TIMEOUT_MS
from streaming.zk.client import ZkSession
from tests.e2e.demo_cluster import controlled, of_protocol
from tests.e2e.group_stage import BROKER_CONFIG, GROUP_PARTITIONS, OPTIONS
from tests.e2e.random_checks import (
    leaderless,
    leftovers_of_absence,
    may_ack,
    unfinished,
    wait_until_none,
)
from tests.e2e.random_cli import Say, parsed, parser_of, telling
from tests.e2e.random_groups import Groups
from tests.e2e.random_logs import log_cluster_in, misdecided, options_for
from tests.e2e.random_ours import Ours
from tests.e2e.random_plan import (
    SHARES,
    SHARES_OF_DEPRIORITIZING,
    SHARES_OF_HANGING,
    SHARES_OF_LOG_CLUSTER,
    SHARES_OF_ZOOKEEPER,
    Operation,
    Plan,
)
from tests.e2e.random_roles import Roles
from tests.e2e.random_stage import KEEPING_RECORDS, Stage
from tests.e2e.random_traffic import Traffic
from tests.e2e.verifying import told_otherwise
from tests.fixtures.ensemble import ZooKeeperEnsemble
from tests.fixtures.log_cluster import LogCluster
from tests.integration.front.harness import put_config

LEASE_MS = 20_000
_START_S = 300.0
_LEADERS_EVERY = 20
_LEADERS_S = 120.0
_QUIET_S = 420.0
_TOLD_S = 60.0
_ACKS_S = 120.0
_DIGEST_S = 120.0

_DONE_IN_EVERY_RUN = (("create topic",), ("reassign", "reassign by znode"))
"""Of each of these, one operation at least; a busy machine may refuse the others."""


@dataclass(frozen=True, slots=True)
class More:
    """What comes beside: consumer groups that we coordinate; a ZooKeeper that goes away, and
    pauses, or one of its three servers that does; a standby, and processes that stand still; a
    cluster that has our logs; unclean elections that wait until it is known whose log ends last;
    brokers that are to lead no more for a time; another inter-broker protocol, and versions of
    brokers, the first of which they begin with.
    """

    groups: bool = False
    zookeeper: bool = False
    ensemble: bool = False
    standby: bool = False
    log_cluster: bool = False
    recovery: bool = False
    deprioritize: bool = False
    protocol: str = ""
    versions: tuple[str, ...] = ()

    @property
    def shares(self) -> dict[str, int]:
        """Each operation's share."""
        shares = dict(SHARES)
        if self.zookeeper or self.ensemble:
            shares |= SHARES_OF_ZOOKEEPER
        if self.standby:
            shares |= SHARES_OF_HANGING
        if self.log_cluster:
            shares |= SHARES_OF_LOG_CLUSTER
        if self.deprioritize:
            shares |= SHARES_OF_DEPRIORITIZING
        return shares


RECOVERY = (
    "--set=unclean.recovery.manager.enabled=true",
    "--set=unclean.recovery.timeout.ms=3000",
)
NO_MORE = More()


@dataclass(slots=True)
class Outcome:
    """How a run ended. misread: records that a consumer saw and that are not where it saw them.
    uncommitted: acknowledged commits of groups that are not there.

    wrong: what should not be. kept: what brokers keep because they were away when it ended.
    """

    seed: int
    verdict: Verdict
    producers: int
    consumed: int
    misread: int
    uncommitted: list[str]
    wrong: list[str]
    kept: list[str]
    results: Counter[str] = field(default_factory=Counter)

    @property
    def losses(self) -> list[str]:
        """Records that are not where they were acked or seen, and commits."""
        misread = [f"{self.misread} records that consumers saw"] if self.misread else []
        return [*(str(one) for one in self.verdict.lost), *misread, *self.uncommitted]

    @property
    def faults(self) -> list[str]:
        """What else should not be, and what should have been done in a run and was not."""
        undone = [
            f"nothing came of any {' or '.join(names)}"
            for names in _DONE_IN_EVERY_RUN
            if not any(self.results[f"{name}: done"] for name in names)
        ]
        flowed = self.verdict.acked > 0 and self.consumed > 0
        return [*self.wrong, *undone, *([] if flowed else ["nothing was acked and consumed"])]

    def __str__(self) -> str:
        """Tell all counts."""
        lines = [
            f"seed {self.seed}: {self.verdict}, consumed {self.consumed}, misread {self.misread}",
            f"producers, with those that replaced stuck ones: {self.producers}",
            f"kept by brokers that were away: {self.kept}",
            *(f"  {count} x {result}" for result, count in sorted(self.results.items())),
            *(f"WRONG: {one}" for one in self.faults),
            *(f"LOST: {one}" for one in self.losses[:10]),
        ]
        return "\n".join(lines)


def run(
    demo: DemoCluster,
    session: ZkSession,
    seed: int,
    count: int,
    say: Say,
    *,
    more: More = NO_MORE,
    log_cluster: LogCluster | None = None,
) -> Outcome:
    """Perform a seed's operations and return how it ended; log_cluster: where our logs are."""
    with ExitStack() as stopping:
        traffic = _prepare(demo, session)
        stopping.callback(traffic.stop)
        roles = Roles(demo, with_standby=more.standby)
        stopping.callback(roles.stop_standby)
        stage, results = Stage(demo, session, Ours(demo, roles, log_cluster)), Counter[str]()
        groups = Groups(stage) if more.groups else None
        if groups is not None:
            stopping.callback(groups.stop)
        moved = {} if groups is None else {GROUP_TOPIC: GROUP_PARTITIONS}
        operations = Plan(seed, (TOPIC, PARTITIONS), moved, more.shares, more.versions).draw(count)
        wrong = _perform(stage, traffic, operations, results, say)
        stage.return_all()
        wrong += stage.ours.wrong
        say("everything is back; waiting for quiet")
        wrong += wait_until_none(lambda: unfinished(demo, session), _QUIET_S)
        wrong += wait_until_none(lambda: told_otherwise(demo), _TOLD_S)
        wrong += _silent(traffic, groups)
        lost = [] if groups is None else groups.lost()
        if groups is not None:
            say(str(groups))
    wrong += wait_until_none(lambda: misdecided(demo, log_cluster), _DIGEST_S)
    verdict, consumed, misread = traffic.verdict()
    kept = leftovers_of_absence(demo, session)
    return Outcome(seed, verdict, traffic.producers, consumed, misread, lost, wrong, kept, results)


def _silent(traffic: Traffic, groups: Groups | None) -> list[str]:
    """Wait until every partition acks records again, and each member of a group its commits, and
    return what does not.
    """
    quiet_s = time.monotonic()

    def missing() -> list[str]:
        traffic.revive(acks_are_possible=True)
        return traffic.silent(quiet_s) + ([] if groups is None else groups.silent(quiet_s))

    return wait_until_none(missing, _ACKS_S)


def _perform(
    stage: Stage,
    traffic: Traffic,
    operations: Iterator[Operation],
    results: Counter[str],
    say: Say,
) -> list[str]:
    """Perform operations, and return which partitions lacked a leader in between."""
    wrong: list[str] = []
    for operation in operations:
        began_s = time.monotonic()
        result = stage.perform(operation)
        say(f"{operation}: {result} in {time.monotonic() - began_s:.1f} s")
        results[f"{operation.name}: {result}"] += 1
        time.sleep(operation.pause_s)
        traffic.revive(may_ack(stage.demo, TOPIC, stage.down))
        if operation.number % _LEADERS_EVERY == _LEADERS_EVERY - 1 and stage.ours.decide:
            found = wait_until_none(
                lambda: leaderless(stage.demo, stage.session, stage.down), _LEADERS_S
            )
            wrong += [f"after operation {operation.number}: {one}" for one in found]
            say(f"  without {sorted(stage.down)}; wrongly without a leader: {found}")
    return wrong


def _prepare(demo: DemoCluster, session: ZkSession) -> Traffic:
    start_everything(demo)

    def missing() -> list[str]:
        return [] if controlled(demo) else ["we do not control the cluster"]

    _need(wait_until_none(missing, _START_S))
    demo.create_topic(TOPIC, PARTITIONS)
    # The cluster's default will change; what is produced to may not lose acknowledged records.
    put_config(session, "topics", TOPIC, KEEPING_RECORDS)
    _need(wait_until_none(lambda: unfinished(demo, session), _START_S))
    return Traffic(demo.embedded.bootstrap_servers, TOPIC, PARTITIONS)


def _need(missing: list[str]) -> None:
    if missing:
        raise RuntimeError(f"the cluster did not start: {missing}")


def cluster_options(more: More, log_cluster: LogCluster | None = None) -> dict[str, Any]:
    """Return what a DemoCluster is made with; log_cluster: where our logs are."""
    made_with = of_protocol(more.protocol, more.versions[0]) if more.protocol else {}
    options = [f"--set=controller.lease.ms={LEASE_MS}"]
    if log_cluster is not None:
        options += options_for(log_cluster)
    if more.recovery:
        options += RECOVERY
    if more.groups:
        options += OPTIONS
        made_with["broker_config"] = {**BROKER_CONFIG, **made_with.get("broker_config", {})}
    if more.ensemble:
        made_with["zookeeper"] = ZooKeeperEnsemble
    return {**made_with, "options": options}


def main() -> None:
    """Run one seed in a folder, which stays."""
    parser = parser_of("random operations on real brokers", 200)
    parser.add_argument("--groups", action="store_true", help="coordinate consumer groups too")
    parser.add_argument("--zookeeper", action="store_true", help="it goes away too, and pauses")
    parser.add_argument("--ensemble", action="store_true", help="one of three ZooKeepers does")
    parser.add_argument("--standby", action="store_true", help="and processes that stand still")
    parser.add_argument("--log-cluster", action="store_true", help="it has our logs, and goes away")
    parser.add_argument("--recovery", action="store_true", help="log ends before unclean elections")
    parser.add_argument("--deprioritize", action="store_true", help="some lead no more for a time")
    given = parsed(parser)
    more = More(
        given.groups,
        given.zookeeper,
        given.ensemble,
        given.standby,
        given.log_cluster,
        given.recovery,
        given.deprioritize,
        given.protocol,
        tuple(given.versions),
    )
    began_s = time.monotonic()
    with telling(given) as (folder, say), ExitStack() as closing:
        logs = closing.enter_context(log_cluster_in(folder / "logs")) if more.log_cluster else None
        demo = DemoCluster(folder, **cluster_options(more, logs))
        closing.callback(demo.stop)
        with ZkSession(demo.embedded.connect, SESSION_TIMEOUT_MS) as session:
            outcome = run(
                demo, session, given.seed, given.operations, say, more=more, log_cluster=logs
            )
        say(f"{outcome}\nafter {time.monotonic() - began_s:.0f} s")
    sys.exit(bool(outcome.losses or outcome.faults))


if __name__ == "__main__":
    main()
