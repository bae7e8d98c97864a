"""Memory and CPU time of the processes of helmstream, by what they are."""

from __future__ import annotations

from pathlib import Path

import psutil

from streaming.supervisor.processes import FRONT, JOB, Supervisor


def processes(supervisor: Supervisor) -> dict[str, list[psutil.Process]]:
    """Return front, job (Python), JVM, and the Python workers that the JVM started."""
    front = psutil.Process(supervisor.roles[FRONT].child.pid)
    job = psutil.Process(supervisor.roles[JOB].child.pid)
    below = [one for one in job.children(recursive=True) if one.status() != psutil.STATUS_ZOMBIE]
    jvm = [one for one in below if one.name() == "java"]
    workers = [one for one in below if one not in jvm]
    return {"front": [front], "job": [job], "jvm": jvm, "workers": workers}


def high_water_mb(found: dict[str, list[psutil.Process]]) -> dict[str, float]:
    """Return the most memory each kind ever had resident; shared pages count for each process."""
    return {f"{kind}_mb": sum(map(_high_water_mb, ones)) for kind, ones in found.items()}


def cpu_s(found: dict[str, list[psutil.Process]]) -> dict[str, float]:
    """Return the CPU seconds each kind has used so far."""
    return {f"{kind}_cpu_s": sum(map(_cpu_s, ones)) for kind, ones in found.items()}


def _high_water_mb(process: psutil.Process) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii", errors="replace")
    (line,) = [one for one in status.splitlines() if one.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
