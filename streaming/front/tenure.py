"""Our hold on the controller role: claimed, checked and given back in the session that made it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streaming.front.rivals import Rivals
from streaming.front.signals import IdTaken, RoleLost
from streaming.observers.tree import WatchedTree
from streaming.process.wall_clock import wall_clock_ms
from streaming.wire.endpoints import Endpoint
from streaming.zk.claim import (
    ControllerClaim,
    ControllerTaken,
    claim_controller,
    register_broker,
    resign_controller,
)
from streaming.zk.client import ZkSession
from streaming.zk.own_id import BrokersId, addresses, foreign_registration
from streaming.zk.types import ZNode
from streaming.zk.znodes import (
    CONTROLLER_EPOCH_PATH,
    CONTROLLER_PATH,
    BrokerZNode,
    broker_bytes,
    broker_path,
    parse_controller_id,
)


class Tenure:
    """One claim on /controller, and the registration that goes with it; used by one thread.

    Every method raises the errors of streaming.zk.errors.
    """

    def __init__(
        self,
        session: ZkSession,
        tree: WatchedTree,
        controller_id: int,
        rivals: Rivals,
        holder_seen: Callable[[int | None], None],
    ) -> None:
        """holder_seen: told who holds /controller, None when nobody does."""
        self._session = session
        self._tree = tree
        self._controller_id = controller_id
        self._rivals = rivals
        self._holder_seen = holder_seen
        self._claim: ControllerClaim | None = None
        self._registered_rack: tuple[str | None] | None = None  # None: not registered yet

    def held(self) -> ControllerClaim:
        """Return our claim, which must have been made."""
        assert self._claim is not None, "a term loads, follows and gives back after its claim"
        return self._claim

    def check_id(self, endpoints: Sequence[Endpoint]) -> ZNode | None:
        """Make sure that no broker has our id, and return /controller as it was read for that.

        endpoints: those we are announced with. What a killed front left behind belongs to the
        session that still has /controller. Raises BrokersId when our id is a broker's, IdTaken when
        it may be.
        """
        holder, registered = foreign_registration(self._session, self._controller_id)
        if registered is not None:
            if _is_elsewhere(registered, endpoints):
                raise BrokersId(self._controller_id, registered)
            path = broker_path(self._controller_id)
            raise IdTaken(
                f"{path} is registered by another process; if it is there for longer than a session"
                f" timeout, controller.id = {self._controller_id} is a broker's: set it to an id"
                " that no broker has"
            )
        return holder

    def claim(self, endpoints: Sequence[Endpoint]) -> ControllerClaim:
        """Take the role from whoever has it. endpoints: those we are announced with.

        Raises RoleLost when it kept changing hands, BrokersId when our id is a broker's, IdTaken
        when it may be, SharedId when another process takes it back with our id, KRaftControls,
        ClaimForbidden.
        """
        holder = self.check_id(endpoints)
        if holder is not None and parse_controller_id(holder.data) == self._controller_id:
            self._rivals.meet(self._controller_id, holder.ephemeral_owner)
        self._session.ensure_path("/")  # a chroot that is new, as brokers do
        if (session_id := self._session.session_id) is not None:
            self._rivals.claiming(session_id)
        taken = claim_controller(self._session, self._controller_id, steal=True)
        if isinstance(taken, ControllerTaken):
            raise RoleLost(f"the role kept changing hands, last holder {taken.holder_id}")
        self._claim = taken
        self._holder_seen(taken.controller_id)
        return taken

    def check_controller(self) -> None:
        """Look at /controller, leaving a watch; raises RoleLost when it is not ours any more."""
        znode = self._tree.get(CONTROLLER_PATH)
        holder = None if znode is None else parse_controller_id(znode.data)
        self._holder_seen(holder)
        if znode is None:
            raise RoleLost(f"{CONTROLLER_PATH} was deleted")
        if znode.ephemeral_owner != self.held().claimed_by:
            raise RoleLost(f"{CONTROLLER_PATH} was taken by {holder}")

    def check_epoch(self) -> None:
        """Look at /controller_epoch; raises RoleLost when somebody claimed after us."""
        znode = self._session.get(CONTROLLER_EPOCH_PATH)
        if znode is None or znode.version != self.held().epoch_zk_version:
            raise RoleLost(f"{CONTROLLER_EPOCH_PATH} was counted up by somebody else")

    def register(self, endpoints: Sequence[Endpoint], rack: str | None) -> None:
        """Register as a broker: brokers before 3.1 look the controller up among them.

        Done again when the rack is another one: old tools place replicas by registrations.
        """
        if self._registered_rack == (rack,):
            return
        if endpoints:
            data = broker_bytes(BrokerZNode(endpoints, rack), wall_clock_ms())
            register_broker(self._session, broker_path(self.held().controller_id), data)
        self._registered_rack = (rack,)

    def give_back(self) -> bool:
        """Delete our registration, and /controller if it is ours; False when it was not."""
        claim = self.held()
        path = broker_path(claim.controller_id)
        present = self._session.get(path)
        if present is not None and present.ephemeral_owner == claim.claimed_by:
            self._session.delete(path)
        return resign_controller(self._session, claim)


def _is_elsewhere(registered: ZNode, endpoints: Sequence[Endpoint]) -> bool:
    """Return whether a registration says that its process is reached at none of our endpoints;
    False when it cannot be read.

    What an earlier session of ours left has our endpoints, unless this node is announced elsewhere
    since.
    """
    theirs = addresses(registered)
    return bool(theirs) and {(end.host, end.port) for end in endpoints}.isdisjoint(theirs)
