"""Orders to a running helmstream: `pause`, `resume` and `allow-shutdown`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from streaming.commands.options import ConfigFiles, DataDirOption, Overrides, settings_from
from streaming.process.polling import polls
from streaming.sockets.control_socket import OrderRefused, give_order
from streaming.sockets.status_socket import fetch_status

Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept in the event log.")
]
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Wait for the effect.")
]

_POLL_S = 0.05


def pause(
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDirOption = None,
    reason: Reason = "",
    timeout_s: Timeout = 15.0,
) -> None:
    """Decide nothing about partitions until `resume`, but keep the controller role and answer.

    Meanwhile no leader is elected when a broker dies, and no ISR shrinks: producers with acks=all
    wait for a dead follower. The pause outlives restarts.
    """
    folder = settings_from(config, overrides, data_dir).data_dir
    before = fetch_status(folder, timeout_s)
    offset = give_order(folder, {"order": "pause", "reason": reason}, timeout_s)
    _await_folded(folder, offset, timeout_s, paused=True)
    told = f"paused (event {offset}); go on with: helmstream resume"
    Console().print(_already(before) + told, markup=False)


def _already(before: Mapping[str, Any]) -> str:
    """Return what is said first of a pause that there was before it was ordered."""
    if not before["paused"]:
        return ""
    reason = before.get("pause_reason")
    return f"it was paused already (reason: {reason})\n" if reason else "it was paused already\n"


def resume(
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDirOption = None,
    reason: Reason = "",
    timeout_s: Timeout = 15.0,
) -> None:
    """End a pause: everything is read again from ZooKeeper, and what happened is decided about."""
    folder = settings_from(config, overrides, data_dir).data_dir
    offset = give_order(folder, {"order": "resume", "reason": reason}, timeout_s)
    _await_folded(folder, offset, timeout_s, paused=False)
    Console().print(f"resumed (event {offset})")


def allow_shutdown(
    broker: Annotated[int, typer.Argument(help="The broker's id.", min=0)],
    config: ConfigFiles = None,
    overrides: Overrides = None,
    data_dir: DataDirOption = None,
    timeout_s: Timeout = 15.0,
) -> None:
    """Let a broker shut down once even if partitions fall below min.insync.replicas.

    Overrides controlled.shutdown.safety.check.enable until the broker is gone, or another
    controller elected.
    """
    folder = settings_from(config, overrides, data_dir).data_dir
    status = fetch_status(folder, timeout_s)
    _check_registered(broker, status)
    offset = give_order(folder, {"order": "allow_shutdown", "broker_id": broker}, timeout_s)
    _await_folded(folder, offset, timeout_s)
    Console().print(f"broker {broker} may shut down (event {offset}){_without_check(status)}")


def _without_check(status: Mapping[str, Any]) -> str:
    """Return what is added where no shutdown is refused anyway."""
    if status.get("checks_shutdowns", True):
        return ""
    return ", as it could without this: controlled.shutdown.safety.check.enable is off"


def _check_registered(broker: int, status: Mapping[str, Any]) -> None:
    """Raise OrderRefused when nothing would come of letting a broker shut down."""
    from streaming.front.controller_role import RolePhase

    if status["role"] != RolePhase.ACTIVE:
        raise OrderRefused(
            f"the role is {status['role']}, not {RolePhase.ACTIVE}: only the controller lets "
            "brokers go, and what it allows ends with its term"
        )
    if broker not in status["brokers"]:
        known = ", ".join(map(str, status["brokers"])) or "none"
        raise OrderRefused(f"broker {broker} is not registered; registered are: {known}")


def _await_folded(
    folder: Path, offset: int, timeout_s: float, *, paused: bool | None = None
) -> None:
    """Wait until a job has folded the order, and for what it says of a pause; raises OrderRefused
    when that takes too long.
    """
    for _ in polls(timeout_s, _POLL_S):
        status = fetch_status(folder, timeout_s)
        folded = status["job"]["completed_offset"] > offset
        if folded and paused in {None, status["paused"]}:
            return
    raise OrderRefused(
        f"the order is in the log, but no job has folded it within {timeout_s:g} s; "
        "it counts as soon as one does"
    )
