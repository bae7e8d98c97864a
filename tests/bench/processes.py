"""Memory and CPU time of the processes of helmstream, by what they are.

Spark ends Python workers and starts others whenever it likes. What one of them used is then its
parent's, as time of children that were waited for, so that CPU time never goes back.
"""

from __future__ import annotations

from pathlib import Path

import psutil

from streaming.supervisor.processes import FRONT, JOB, Supervisor


def processes(supervisor: Supervisor) -> dict[str, list[psutil.Process]]:
    """Return front, job (Python), JVM, and the Python workers that the JVM started."""
    front = psutil.Process(supervisor.roles[FRONT].child.pid)
    job = psutil.Process(supervisor.roles[JOB].child.pid)
    below = job.children(recursive=True)
    jvm = [one for one in below if _is_java(one)]
    workers = [one for one in below if one not in jvm]
    return {"front": [front], "job": [job], "jvm": jvm, "workers": workers}


def resident_mb(found: dict[str, list[psutil.Process]]) -> dict[str, float]:
    """Return what each kind has resident now; shared pages count for each process."""
    return {
        f"{kind}_rss_mb": sum(_memory_mb(one, "VmRSS:") for one in ones)
        for kind, ones in found.items()
    }


def high_water_mb(found: dict[str, list[psutil.Process]]) -> dict[str, float]:
    """Return the most memory each kind ever had resident; shared pages count for each process."""
    return {
        f"{kind}_mb": sum(_memory_mb(one, "VmHWM:") for one in ones) for kind, ones in found.items()
    }


def cpu_s(found: dict[str, list[psutil.Process]]) -> dict[str, float]:
    """Return the CPU seconds each kind has used so far, with those of children that ended."""
    while True:
        try:
            return {f"{kind}_cpu_s": sum(map(_cpu_s, ones)) for kind, ones in found.items()}
        except psutil.NoSuchProcess as gone:  # its parent has its time by now: read all again
            found = {
                kind: [one for one in ones if one.pid != gone.pid] for kind, ones in found.items()
            }


def cores_between(
    before: dict[str, float], after: dict[str, float], took_s: float
) -> dict[str, float]:
    """Return how many cores each kind used between two answers of `cpu_s`."""
    return {name.replace("cpu_s", "cores"): (after[name] - before[name]) / took_s for name in after}


def _is_java(process: psutil.Process) -> bool:
    try:
        return process.name() == "java"
    except psutil.NoSuchProcess:
        return False


def _memory_mb(process: psutil.Process, field: str) -> float:
    """Return a field of the process's status, 0 for a process that has ended."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text("ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(
        int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(field)
    )


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    ended = times.children_user + times.children_system
    return float(times.user + times.system + ended)
