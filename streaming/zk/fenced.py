"""Writes many znodes fenced by the controller epoch."""

from __future__ import annotations

from collections.abc import Iterable

from streaming.zk.client import ZkSession
from streaming.zk.ops import Check, WriteOp
from streaming.zk.outcomes import OpOutcome
from streaming.zk.write_call import WriteCall
from streaming.zk.write_limits import WriteLimits
from streaming.zk.znodes.controller import CONTROLLER_EPOCH_PATH


class FencedWriter:
    """Writes znodes as the controller of one epoch, as long as that epoch is the present one.

    Every multi begins with a check of /controller_epoch's version. The writes of one call to one
    znode are made in their order, together at the place of the first; apart from that multis are
    sent in the order of the call. One writer is used by one thread at a time.
    """

    def __init__(
        self,
        session: ZkSession,
        epoch_zk_version: int,
        limits: WriteLimits,
    ) -> None:
        """Take the session, its claim's version, and how much to write at once."""
        self._session = session
        self._check = Check(CONTROLLER_EPOCH_PATH, epoch_zk_version)
        self._limits = limits

    def write(self, ops: Iterable[WriteOp]) -> list[OpOutcome]:
        """Make all writes that can be made, and return an outcome for each, in order.

        ops: may be made as they are asked for, while those before them are under way.
        A write that fails costs the others of its multi nothing but a second try. One whose effect
        is there already is WRITTEN, so a call may be repeated after a crash. A lost connection is
        waited for; raises SessionLost when the session expired, or nothing could be written for a
        session timeout. How far it came is then not known: repeat the call with the next claim.
        """
        return WriteCall(self._session, self._check, ops, self._limits).run()
