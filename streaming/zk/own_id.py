"""Whether the id of this controller is a broker's."""

from __future__ import annotations

from streaming.errors import ConfigurationError
from streaming.zk.reader import ZkReader
from streaming.zk.types import ZNode
from streaming.zk.znodes import CONTROLLER_PATH, broker_path, parse_broker


class BrokersId(ConfigurationError):
    """The id of this controller is that of a broker."""

    def __init__(self, controller_id: int, registered: ZNode) -> None:
        """registered: the broker's registration."""
        found = addresses(registered)
        where = "an unreadable address" if not found else f"{found[0][0]}:{found[0][1]}"
        super().__init__(
            f"controller.id = {controller_id} is the id of a broker at {where}: set it to an id"
            " that no broker has"
        )


def addresses(registered: ZNode) -> list[tuple[str, int]]:
    """Return where a registration says that its process is reached; nothing when it cannot be
    read.
    """
    try:
        return [(end.host, end.port) for end in parse_broker(registered.data).endpoints]
    except ValueError:
        return []


def foreign_registration(
    session: ZkReader, controller_id: int
) -> tuple[ZNode | None, ZNode | None]:
    """Return /controller, and the registration of who has the id unless a front has it that has the
    role; None: there is none.
    """
    # In this order: a session that ends in between takes both, and no registration is seen without
    # its /controller.
    holder = session.get(CONTROLLER_PATH)
    registered = session.get(broker_path(controller_id))
    if registered is None or _registered_as_holder(registered, holder):
        return holder, None
    return holder, registered


def _registered_as_holder(registered: ZNode, holder: ZNode | None) -> bool:
    """Return whether a registration is that of a front which has the role.

    A front claims first. A broker registers first, also one that has the role itself
    (KafkaServer.startup, KafkaController.processRegisterBrokerAndReelect).
    """
    if holder is None or registered.ephemeral_owner != holder.ephemeral_owner:
        return False
    return registered.czxid > holder.czxid
