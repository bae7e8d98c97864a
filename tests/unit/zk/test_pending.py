"""kazoo's errors in our words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import AuthFailedError, ConnectionClosedError, SessionExpiredError

from streaming.zk.errors import AuthenticationFailed, SessionLost
from streaming.zk.pending import Pending
from streaming.zk.types import SessionState


def failing(error: Exception, *, was_refused: bool) -> Pending[Any]:
    def get(timeout: float) -> Any:
        raise error

    session: Any = SimpleNamespace(hosts="zk:1", state=SessionState.LOST, was_refused=was_refused)
    return Pending(session, "/a", SimpleNamespace(get=get))


@pytest.mark.parametrize("error", [SessionExpiredError(), ConnectionClosedError()])
def test_a_session_that_is_over(error: Exception) -> None:
    with pytest.raises(SessionLost, match="/a"):
        failing(error, was_refused=False).result(1.0)


@pytest.mark.parametrize("error", [AuthFailedError(), ConnectionClosedError()])
def test_credentials_that_are_refused(error: Exception) -> None:
    """The second is what a request finds that is sent while the server hangs up."""
    with pytest.raises(AuthenticationFailed, match="refused the credentials"):
        failing(error, was_refused=True).result(1.0)
