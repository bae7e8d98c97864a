"""What became of the writes that a fenced writer was given."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from streaming.zk.types import ZNode


class OutcomeKind(StrEnum):
    """What became of one write."""

    WRITTEN = "written"
    CONFLICT = "conflict"
    FENCED = "fenced"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class OpOutcome:
    """What became of one write.

    WRITTEN: version is the znode's after it (-1: deleted). CONFLICT: the znode is not as the write
    expected; current is what it is (None: missing). FENCED: another controller has taken over.
    REJECTED: can never succeed (no permission, bad path, too large); current is what the znode is
    (None: missing, or not to be read either). reason says more in words.
    """

    kind: OutcomeKind
    version: int = -1
    current: ZNode | None = None
    reason: str = ""
