"""Which writes of one call are settled, and what settles the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache

from streaming.zk.chain import Chain, Settled
from streaming.zk.client import ZkSession
from streaming.zk.errors import RequestFailed, ZkErrorCode
from streaming.zk.multiread import read_many
from streaming.zk.multis import Batch, culprit
from streaming.zk.ops import Create, OpResult
from streaming.zk.outcomes import OpOutcome, OutcomeKind
from streaming.zk.types import ZNode
from streaming.zk.write_limits import WriteLimits
from streaming.zk.write_source import WriteSource

_MAX_FAILURES_WITHOUT_PROGRESS = 20

_CONFLICT_CODES = {
    ZkErrorCode.BAD_VERSION,
    ZkErrorCode.NO_NODE,
    ZkErrorCode.NODE_EXISTS,
    ZkErrorCode.NOT_EMPTY,
}
_FENCED = OpOutcome(OutcomeKind.FENCED, reason="another controller has taken over")


class Settling:
    """The outcomes of the writes of one call, as far as they are known.

    What a multi says settles the writes it made; of a multi that failed, or was not answered, the
    znodes themselves say what became of its writes.
    """

    def __init__(
        self,
        session: ZkSession,
        source: WriteSource,
        limits: WriteLimits,
    ) -> None:
        """Start with nothing settled of what the source makes."""
        self._session = session
        self._source = source
        self._max_bytes_per_write = limits.max_bytes_per_write
        self._outcomes: dict[int, OpOutcome] = {}
        self._unfinished: dict[str, Chain] = {}
        self._settled = 0

    def outcomes(self) -> list[OpOutcome]:
        """Return what became of each write; what was never settled was fenced."""
        found = self._outcomes
        return [found.get(place, _FENCED) for place in range(len(self._source.ops))]

    def chained(self, places: range) -> list[Chain]:
        """Put some writes in chains, which are unfinished from now on; return those that were not
        before.
        """
        chains: list[Chain] = []
        for place in places:
            op = self._source.ops[place]
            size = self._source.sizes[place]
            if size > self._max_bytes_per_write:
                self._outcomes[place] = OpOutcome(
                    OutcomeKind.REJECTED,
                    reason=f"{op.path}: {size} bytes, but ZooKeeper takes at most"
                    f" {self._max_bytes_per_write} (jute.maxbuffer)",
                )
                continue
            chain = self._unfinished.get(op.path)
            if chain is None:
                chain = self._unfinished[op.path] = Chain(op.path)
                chains.append(chain)
            chain.add(place, op)
        return chains

    def settle(self, batch: Batch, results: list[OpResult]) -> None:
        """Settle what a multi has made: its first result is that of its check."""
        start = 1
        for chain, count in batch:
            self._settle(chain, chain.settle(results[start : start + count]))
            start += count

    def settle_straight(self, places: range, results: list[OpResult]) -> None:
        """Settle what a multi has made of writes that are in no chain; the first is its check's."""
        self._outcomes.update(zip(places, map(_written, results[1:]), strict=True))
        self._settled += len(places)

    def blame(self, batch: Batch, failed: int, code: int) -> None:
        """Settle the chain that made a multi fail, where reading its znode would not tell why."""
        number, offset = culprit(batch, failed - 1)
        chain = batch[number][0]
        reason = str(RequestFailed(code, chain.path))
        if code not in _CONFLICT_CODES:
            for other, _ in batch:  # it may be the same with all of them: one try each settles that
                other.alone = True
            self._settle(chain, chain.give_up(OpOutcome(OutcomeKind.REJECTED, reason=reason)))
        elif offset:
            chain.limit = offset
        elif (
            self._is_hopeless(batch[:number], chain, code)
            or chain.failed(self._settled) > _MAX_FAILURES_WITHOUT_PROGRESS
        ):
            self._settle_read(
                chain,
                lambda current: chain.give_up(
                    OpOutcome(OutcomeKind.CONFLICT, current=current, reason=reason)
                ),
            )

    def _is_hopeless(self, before: Batch, chain: Chain, code: int) -> bool:
        """Tell whether a parent stays missing, or children stay in the way, whatever else we write.

        Neither shows in the znode itself. Both may be due to a write of this call that failed with
        its multi, but not to one that came before in the same multi.
        """
        if code == ZkErrorCode.NO_NODE and isinstance(chain.next_op, Create):
            return _parent(chain.path) not in self._unfinished
        if code == ZkErrorCode.NOT_EMPTY:
            made = {other.path for other, _ in before}
            return not any(
                _parent(path) == chain.path and path not in made for path in self._unfinished
            )
        return False

    def judge(self, batch: Batch) -> None:
        """Settle what can be settled by what the znodes are now."""
        chains = [chain for chain, _ in batch if not chain.finished]
        try:
            columns = read_many(self._session, [chain.path for chain in chains])
        except RequestFailed:
            for chain in chains:
                self._settle_read(chain, chain.judge)
        else:
            for row, chain in enumerate(chains):
                self._settle(chain, chain.judge(columns.znode(row)))

    def read_rejected(self) -> None:
        """Say what the znodes are of which writes were rejected."""
        for place, outcome in self._outcomes.items():
            if outcome.kind is OutcomeKind.REJECTED:
                try:
                    current = self._session.get(self._source.ops[place].path)
                except RequestFailed:
                    continue
                self._outcomes[place] = replace(outcome, current=current)

    def _settle_read(
        self, chain: Chain, settle: Callable[[ZNode | None], Iterable[Settled]]
    ) -> None:
        """Settle one chain by what its znode is now; one that may not be read is rejected."""
        try:
            current = self._session.get(chain.path)
        except RequestFailed as error:
            rejected = OpOutcome(OutcomeKind.REJECTED, reason=str(error))
            self._settle(chain, chain.give_up(rejected))
        else:
            self._settle(chain, settle(current))

    def _settle(self, chain: Chain, settled: Iterable[Settled]) -> None:
        for place, outcome in settled:
            self._outcomes[place] = outcome
            self._settled += 1
        if chain.finished:
            self._unfinished.pop(chain.path, None)


@lru_cache(maxsize=1024)
def _written_at(version: int) -> OpOutcome:
    return OpOutcome(OutcomeKind.WRITTEN, version)


def _written(result: OpResult) -> OpOutcome:
    return _written_at(result[1])


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
