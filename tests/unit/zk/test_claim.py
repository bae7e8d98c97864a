"""What a claim that was not made is told as."""

from __future__ import annotations

import pytest

from streaming.zk.claim import ClaimForbidden, ControllerTaken, claim_controller
from streaming.zk.errors import RequestFailed, ZkErrorCode
from streaming.zk.types import ZNode

ROLLED_BACK = (ZkErrorCode.ROLLED_BACK, -1)


class Session:
    """A ZooKeeper without /controller, whose every multi fails at the second operation."""

    session_id = 77

    def __init__(self, code: int) -> None:
        self.code = code
        self.multis = 0

    def get(self, path):
        return ZNode(b"4", 9, 1, 1, 1, 0) if path == "/controller_epoch" else None

    def multi(self, ops):
        assert [op.path for op in ops] == ["/controller", "/controller_epoch"]
        self.multis += 1
        return [ROLLED_BACK, (self.code, -1)]


@pytest.mark.parametrize("code", [-101, -103, -110])
def test_a_rival_that_was_quicker_is_looked_for_again(code):
    session = Session(code)
    assert claim_controller(session, 1000, steal=True) == ControllerTaken(None, 0)
    assert session.multis > 1


def test_what_zookeeper_forbids_is_a_matter_of_configuration():
    session = Session(ZkErrorCode.NO_AUTH)
    with pytest.raises(ClaimForbidden, match="/controller_epoch"):
        claim_controller(session, 1000, steal=True)
    assert session.multis == 1


def test_any_other_failure_is_told_as_it_is():
    with pytest.raises(RequestFailed, match="BAD_ARGUMENTS for /controller_epoch"):
        claim_controller(Session(ZkErrorCode.BAD_ARGUMENTS), 1000, steal=True)
