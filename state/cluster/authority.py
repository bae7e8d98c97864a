"""Under which controller epoch decisions are made, and whether any may be made now."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from state.bodies import Fence
from state.payloads.controller import ControllerElected


class Phase(StrEnum):
    """NONE: not the controller, or what is known is out of date. LOADING: elected, the bulk load is
    coming in. ACTIVE: deciding. PAUSED: loaded, but an operator wants nothing decided.
    """

    NONE = "none"
    LOADING = "loading"
    ACTIVE = "active"
    PAUSED = "paused"


@dataclass(slots=True)
class Authority:
    """Our claim of the controller role as the log tells it.

    epoch: the controller epoch. epoch_zk_version: version of `/controller_epoch`, checked by every
    write. rebalancing: brokers, ascending, that get back more leaders at the next step of a
    rebalance that the term has begun. behind_since: brokers, ascending, that have had replicas out
    of sync in all reports from that time on, in ms. paused: an operator's wish, which outlives
    elections.
    """

    phase: Phase = Phase.NONE
    controller_id: int = -1
    epoch: int = -1
    epoch_zk_version: int = -1
    rebalancing: tuple[int, ...] = ()
    behind_since: tuple[tuple[int, int], ...] = ()
    paused: bool = False

    @property
    def is_active(self) -> bool:
        """Whether decisions are made now."""
        return self.phase is Phase.ACTIVE

    @property
    def is_loaded(self) -> bool:
        """Whether the cluster is known, also while an operator wants nothing decided."""
        return self.phase in (Phase.ACTIVE, Phase.PAUSED)

    def fence(self) -> Fence:
        """Return the field of a decision by which its write is refused once another is elected."""
        return {"epoch_zk_version": self.epoch_zk_version}

    def complete_load(self) -> None:
        """Begin to decide, or not while an operator wants nothing decided."""
        self.phase = Phase.PAUSED if self.paused else Phase.ACTIVE

    def pause(self) -> None:
        """Decide nothing until `resume` and the load that follows it."""
        self.paused = True
        if self.phase is Phase.ACTIVE:
            self.phase = Phase.PAUSED

    def resume(self) -> None:
        """Let the next load end the pause: what happened meanwhile was passed over.

        A load that is under way has passed over some of it too. It comes to nothing: what it ended
        with would be decided, and not written yet when the next one reads.
        """
        if self.paused and self.phase in (Phase.LOADING, Phase.PAUSED):
            self.phase = Phase.NONE
        self.paused = False


def elected_authority(elected: ControllerElected, before: Authority) -> Authority:
    """Return the authority of a fresh election, loading; a pause goes on."""
    return Authority(
        Phase.LOADING,
        elected.controller_id,
        elected.epoch,
        elected.epoch_zk_version,
        paused=before.paused,
    )
