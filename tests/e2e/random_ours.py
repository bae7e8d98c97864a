"""Carries out the operations on us, and on the servers that we lean on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence

from streaming.demo.cluster import DemoCluster
from streaming.errors import HelmstreamError
from streaming.process.polling import polls
from streaming.sockets.control_socket import give_order
from streaming.sockets.status_socket import fetch_status
from streaming.supervisor.embedded import ZooKeeperServers
from streaming.supervisor.processes import FRONT, JOB
from tests.e2e.random_roles import Roles
from tests.fixtures.log_cluster import LogCluster

_AGAIN_S = 0.5
_RECOVERY_S = 240.0
_STATUS_S = 5.0


class Ours:
    """Front, job and standby, ZooKeeper and the log cluster; operations are methods by their names.

    abandoned: nobody starts front and job. paused: nothing is decided. wrong: what should have come
    and did not.
    """

    def __init__(
        self, demo: DemoCluster, roles: Roles, log_cluster: LogCluster | None = None
    ) -> None:
        """Take a running cluster, and where our logs are if that is elsewhere."""
        self._demo = demo
        self._roles = roles
        self._log_cluster = log_cluster
        self.abandoned = False
        self.paused = False
        self.wrong: list[str] = []

    @property
    def decide(self) -> bool:
        """Whether somebody is to decide now."""
        return not (self.abandoned or self.paused)

    def return_all(self) -> None:
        """Bring everything back that is away for good."""
        if self.abandoned:
            self.take_control_back(recover=False)
        if self.paused:
            self.resume_decisions()

    def kill_job(self, recover: bool) -> str:
        return self._kill((JOB,), recover)

    def kill_front(self, recover: bool) -> str:
        return self._kill((FRONT,), recover)

    def kill_job_and_front(self, recover: bool) -> str:
        return self._kill((JOB, FRONT), recover)

    def _kill(self, roles: Sequence[str], recover: bool) -> str:
        had_none = [role for role in roles if not self._roles.kill(role)]
        return ", ".join([*(f"no {role}" for role in had_none), self._recovered(recover)])

    def pause_job(self, away_s: float, jvm: bool) -> str:
        return "done" if self._roles.stand_still(JOB, away_s, jvm=jvm) else "no job"

    def pause_front(self, away_s: float) -> str:
        return "done" if self._roles.stand_still(FRONT, away_s) else "no front"

    def kill_zookeeper(self, away_s: float) -> None:
        _kill_for(self._demo.embedded.zookeeper, away_s)

    def pause_zookeeper(self, away_s: float) -> None:
        _pause_for(self._demo.embedded.zookeeper, away_s)

    def kill_log_cluster(self, away_s: float) -> None:
        assert self._log_cluster is not None
        _kill_for(self._log_cluster, away_s)

    def pause_log_cluster(self, away_s: float) -> None:
        assert self._log_cluster is not None
        _pause_for(self._log_cluster, away_s)

    def pause_decisions(self) -> str:
        self.paused = True
        return self._order({"order": "pause", "reason": "by chance"})

    def resume_decisions(self) -> str:
        self.paused = False
        return self._order({"order": "resume", "reason": ""})

    def abandon_control(self) -> None:
        self._roles.abandon()
        self.abandoned = True

    def take_control_back(self, recover: bool) -> str:
        self._roles.take_back()
        self.abandoned = False
        return self._recovered(recover)

    def _order(self, order: Mapping[str, str]) -> str:
        """Give an order once somebody takes it."""
        for _ in polls(_RECOVERY_S, _AGAIN_S):
            with contextlib.suppress(HelmstreamError, OSError):
                give_order(self._demo.folders.root, order, _STATUS_S)
                return "done"
        self.wrong.append(f"nobody took {order} for {_RECOVERY_S:g} s")
        return "no answer"

    def _recovered(self, wanted: bool) -> str:
        if not wanted:
            return "done"
        for _ in polls(_RECOVERY_S, _AGAIN_S):
            if self._deciding():
                return "in control"
        self.wrong.append(f"not in control after {_RECOVERY_S:g} s")
        return "not in control"

    def _deciding(self) -> bool:
        """Whether we have the role, and a new job has folded everything."""
        try:
            status = fetch_status(self._demo.folders.root, _STATUS_S)
        except (HelmstreamError, OSError):
            return False
        role, job = status["role"], status["job"]
        return role == "active" and job["lag"] == 0 and self._roles.is_job(job["pid"])


def _kill_for(server: ZooKeeperServers | LogCluster, away_s: float) -> None:
    server.kill()
    time.sleep(away_s)
    server.start()


def _pause_for(server: ZooKeeperServers | LogCluster, away_s: float) -> None:
    server.pause()
    time.sleep(away_s)
    server.resume()
