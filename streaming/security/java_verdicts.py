"""What a failure in Java means where it is to find out who somebody is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streaming.embedded.jvm import JavaException, JvmFailed, asked
from streaming.security.identity import Refused, Undecided


@contextmanager
def finding_out(by: str = "") -> Iterator[None]:
    """Ask Java who somebody is; raises Refused for what it raises, and Undecided while it cannot be
    asked. by: what finds it out, for the message.
    """
    try:
        with asked():
            yield
    except JvmFailed as error:
        raise Undecided(f"{by}{error}") from error
    except JavaException as error:
        raise Refused(f"{by}{error}") from error
