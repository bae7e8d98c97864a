"""Random operations under Kafka's own controller, and a shadow beside it that must agree.

    python -m tests.e2e.random_shadow --seed 502 --operations 80

The shadow's report is in the folder. With --protocol and --versions brokers are as for
random_operations.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from streaming.demo.cluster import PARTITIONS, TOPIC, DemoCluster
from streaming.supervisor.embedded import SESSION_TIMEOUT_MS
from streaming.zk.client import ZkSession
from tests.e2e.demo_cluster import of_protocol
from tests.e2e.random_cli import Say, parsed, parser_of, telling
from tests.e2e.random_ours import Ours
from tests.e2e.random_plan import SHARES, Plan
from tests.e2e.random_roles import Roles
from tests.e2e.random_stage import Stage
from tests.e2e.waiting import wait_for

OF_OURS = ("job", "front", "control")
"""Operations on these are of no meaning here."""

SHARES_WITHOUT_OURS = {
    name: share for name, share in SHARES.items() if not any(one in name for one in OF_OURS)
}
WINDOW_MS = 60_000
"""A controller on a busy machine is late, not wrong."""

_START_S = 240.0
_SETTLE_S = 20.0
_END_S = 180.0


def run(
    demo: DemoCluster,
    session: ZkSession,
    seed: int,
    count: int,
    say: Say,
    *,
    versions: Sequence[str] = (),
) -> int:
    """Perform a seed's operations, and return what the shadow ended with; versions: those with
    which brokers return.
    """
    demo.embedded.start_brokers()
    with shadow(demo) as process:
        stage = Stage(demo, session, Ours(demo, Roles(demo)))
        stage.create_replicated_topic(TOPIC, PARTITIONS)
        plan = Plan(seed, (TOPIC, PARTITIONS), shares=SHARES_WITHOUT_OURS, versions=versions)
        for operation in plan.draw(count):
            say(f"{operation}: {stage.perform(operation)}")
            time.sleep(operation.pause_s)
        stage.return_all()
        time.sleep(_SETTLE_S)
        process.send_signal(signal.SIGTERM)
        return process.wait(_END_S)


def said(demo: DemoCluster) -> str:
    """Return what the shadow has printed."""
    return _printed(demo).read_text()


@contextmanager
def shadow(demo: DemoCluster) -> Iterator[subprocess.Popen[bytes]]:
    """Start a shadow, which watches from then on."""
    of_cluster = [word for one in demo.embedded.settings() for word in ("--set", one)]
    command = [sys.executable, "-m", "streaming.cli", "shadow", *of_cluster]
    command += ["--set", f"shadow.window.ms={WINDOW_MS}"]
    with _printed(demo).open("wb") as printed:
        process = subprocess.Popen(
            [*command, "--data-dir", str(demo.folders.root)],
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for("a shadow that watches", lambda: "watching since" in said(demo), _START_S)
        yield process
    finally:
        process.kill()
        process.wait()


def _printed(demo: DemoCluster) -> Path:
    return demo.folders.root.parent / "shadow.out"


def main() -> None:
    """Run one seed in a folder, which stays."""
    given = parsed(parser_of("random operations beside a shadow", 80))
    made_with = of_protocol(given.protocol, given.versions[0]) if given.protocol else {}
    with telling(given) as (folder, say):
        demo = DemoCluster(folder, **made_with)
        try:
            with ZkSession(demo.embedded.connect, SESSION_TIMEOUT_MS) as session:
                code = run(
                    demo, session, given.seed, given.operations, say, versions=given.versions
                )
            say(said(demo))
        finally:
            demo.stop()
    sys.exit(code)


if __name__ == "__main__":
    main()
