"""Takes, steals and gives back the controller role: /controller and /controller_epoch."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.errors import ConfigurationError
from streaming.process.wall_clock import wall_clock_ms
from streaming.zk.client import ZkSession
from streaming.zk.errors import (
    ConnectionLost,
    NodeExists,
    RequestFailed,
    ZkErrorCode,
    ZooKeeperError,
)
from streaming.zk.ops import Check, Create, Delete, MultiOp, SetData, first_failure
from streaming.zk.types import ZNode
from streaming.zk.znodes.controller import (
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    controller_bytes,
    epoch_bytes,
    parse_controller_id,
    parse_epoch,
    parse_kraft_epoch,
)

_ATTEMPTS = 5
_LOST_RACES = {ZkErrorCode.BAD_VERSION, ZkErrorCode.NODE_EXISTS, ZkErrorCode.NO_NODE}


@dataclass(frozen=True, slots=True)
class ControllerClaim:
    """We are the controller: our epoch, and the znode version that fences our writes.

    claimed_by is the id of the ZooKeeper session that owns /controller.
    """

    controller_id: int
    epoch: int
    epoch_zk_version: int
    claimed_by: int


@dataclass(frozen=True, slots=True)
class ControllerTaken:
    """Another one is the controller, at this epoch; holder_id None: it kept changing hands."""

    holder_id: int | None
    epoch: int


class BrokenControllerZNode(ZooKeeperError):
    """/controller_epoch does not hold a number, so no epoch can follow it."""


class KRaftControls(ConfigurationError):
    """The cluster migrates to KRaft: the role is not ours to take."""


class ClaimForbidden(ConfigurationError):
    """ZooKeeper does not let us write what the role needs."""


def claim_controller(
    session: ZkSession, controller_id: int, *, steal: bool, now_ms: int | None = None
) -> ControllerClaim | ControllerTaken:
    """Become the controller with the next epoch, in one multi, or learn who is.

    With steal the present holder's /controller is deleted in the same multi, so that no broker can
    elect itself in between; without it a /controller that exists decides. Losing a race is a
    result. Raises ZooKeeperUnreachable, SessionLost, BrokenControllerZNode, RequestFailed,
    ClaimForbidden, and KRaftControls when a KRaft controller holds the role: it keeps it from its
    brokers with a znode that stays (KafkaZkClient.tryRegisterKRaftControllerAsActiveController).
    Source: KafkaZkClient.registerControllerAndIncrementControllerEpoch.
    """
    timestamp_ms = wall_clock_ms() if now_ms is None else now_ms
    taken = ControllerTaken(None, 0)
    for _ in range(_ATTEMPTS):
        epoch, epoch_zk_version = _read_epoch(session)
        present = session.get(CONTROLLER_PATH)
        if present is not None:
            _check_not_kraft(present)
            taken = ControllerTaken(parse_controller_id(present.data), epoch)
            if not steal:
                return taken
        claimed = (controller_id, controller_bytes(controller_id, timestamp_ms))
        claim = _try_claim(session, claimed, epoch, epoch_zk_version, present)
        if claim is not None:
            return claim
    return taken


def resign_controller(session: ZkSession, claim: ControllerClaim) -> bool:
    """Delete /controller if it is still ours; False when somebody else has taken over since.

    The epoch is checked in the same multi: whoever takes over counts it up first. Raises
    ConnectionLost (it may or may not have happened; calling again is safe) and SessionLost.
    """
    present = session.get(CONTROLLER_PATH)
    if present is None or present.ephemeral_owner != claim.claimed_by:
        return False
    ops: list[MultiOp] = [
        Check(CONTROLLER_EPOCH_PATH, claim.epoch_zk_version),
        Delete(CONTROLLER_PATH, present.version),
    ]
    return all(code == 0 for code, _ in session.multi(ops))


def register_broker(session: ZkSession, path: str, data: bytes) -> int:
    """Create our ephemeral broker registration and return its czxid, the broker epoch.

    One that an earlier session of ours left behind is replaced in the same multi. Brokers before
    3.1 look the controller up there on controlled shutdown.
    """
    for _ in range(_ATTEMPTS):
        ops: list[MultiOp] = [Create(path, data, ephemeral=True)]
        if session.get(path) is not None:
            ops.insert(0, Delete(path))
        try:
            session.multi(ops)
        except ConnectionLost:
            session.wait_until_held(session.session_timeout_ms / 1000)
        registered = session.get(path)
        if registered is not None and registered.ephemeral_owner == session.session_id:
            return registered.czxid
    raise NodeExists(-110, path)


def _try_claim(
    session: ZkSession,
    claimed: tuple[int, bytes],
    epoch: int,
    epoch_zk_version: int,
    present: ZNode | None,
) -> ControllerClaim | None:
    controller_id, registration = claimed
    ops: list[MultiOp] = [
        Create(CONTROLLER_PATH, registration, ephemeral=True),
        SetData(CONTROLLER_EPOCH_PATH, epoch_bytes(epoch + 1), epoch_zk_version),
    ]
    if present is not None:
        ops.insert(0, Delete(CONTROLLER_PATH, present.version))
    session_id = session.session_id
    try:
        results = session.multi(ops)
    except ConnectionLost:
        session.wait_until_held(session.session_timeout_ms / 1000)
        if not _took_effect(session, epoch + 1, epoch_zk_version + 1):
            return None
        session_id = session.session_id
    else:
        if (failed := first_failure(results)) is not None:
            _check_lost(results[failed][0], ops[failed].path)
            return None
    if session_id is None:  # the session ended between two lines above: ask again
        return None
    return ControllerClaim(controller_id, epoch + 1, epoch_zk_version + 1, session_id)


def _check_not_kraft(present: ZNode) -> None:
    if parse_kraft_epoch(present.data) is not None:
        raise KRaftControls(
            f"{CONTROLLER_PATH} is held by KRaft controller {parse_controller_id(present.data)}:"
            " this cluster migrates to KRaft, and its brokers would have two controllers. Control"
            f" it with helmstream again when the migration was rolled back and {CONTROLLER_PATH}"
            " deleted"
        )


def _check_lost(code: int, path: str) -> None:
    """Raise what made a claim fail unless it is that somebody was quicker."""
    _check_forbidden(code, path)
    if code not in _LOST_RACES:
        raise RequestFailed(code, path)


def _check_forbidden(code: int, path: str) -> None:
    """Raise ClaimForbidden for what ZooKeeper would refuse at the next attempt, too."""
    if code == ZkErrorCode.NO_AUTH:
        raise ClaimForbidden(
            f"ZooKeeper does not let this node write {path} (NO_AUTH): its ACL is for others, as in"
            " a cluster with zookeeper.set.acl = true; show it the brokers' name"
            " (zookeeper.ssl.keystore.location, or section Client of the file that"
            " java.security.auth.login.config names), open it, or run without helmstream"
        )
    if code == ZkErrorCode.INVALID_ACL:
        raise ClaimForbidden(
            f"zookeeper.set.acl = true lets this node's name alone write {path}, and ZooKeeper has"
            " no name for it (INVALID_ACL): let ZooKeeper find out who connects (ssl.clientAuth, or"
            " an authProvider for SASL), or set it to false"
        )


def _took_effect(session: ZkSession, epoch: int, epoch_zk_version: int) -> bool:
    """Tell whether a claim that was cut off by a lost connection was made after all."""
    session.sync()
    controller = session.get(CONTROLLER_PATH)
    return (
        controller is not None
        and controller.ephemeral_owner == session.session_id
        and _read_epoch(session) == (epoch, epoch_zk_version)
    )


def _read_epoch(session: ZkSession) -> tuple[int, int]:
    """Read (epoch, znode version), creating the znode as Kafka does when it is missing."""
    znode = session.get(CONTROLLER_EPOCH_PATH)
    while znode is None:
        try:
            session.create(CONTROLLER_EPOCH_PATH, epoch_bytes(0))
        except (NodeExists, ConnectionLost):
            session.wait_until_held(session.session_timeout_ms / 1000)
        except RequestFailed as error:
            _check_forbidden(error.code, CONTROLLER_EPOCH_PATH)
            raise
        znode = session.get(CONTROLLER_EPOCH_PATH)
    return epoch_of(znode), znode.version


def epoch_of(znode: ZNode) -> int:
    """Return the epoch that /controller_epoch holds; raises BrokenControllerZNode."""
    try:
        return parse_epoch(znode.data)
    except ValueError as error:
        raise BrokenControllerZNode(f"{CONTROLLER_EPOCH_PATH}: {error}") from error
