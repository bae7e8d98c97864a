"""One call of a fenced writer: large multis, several in flight, until every write is settled."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from streaming.zk.chain import Chain, OpOutcome, OutcomeKind, Settled
from streaming.zk.client import Pending, ZkSession
from streaming.zk.errors import (
    ConnectionLost,
    RequestFailed,
    SessionLost,
    ZkErrorCode,
    ZooKeeperUnreachable,
)
from streaming.zk.multiread import read_many
from streaming.zk.ops import Check, Create, MultiOp, OpResult, WriteOp, first_failure, op_bytes
from streaming.zk.types import ZNode
from streaming.zk.write_limits import WriteLimits

_AROUND_A_WRITE_BYTES = 8_575  # more than what a multi of one write has beside its path and data
_MAX_FAILURES_WITHOUT_PROGRESS = 20

_CONFLICT_CODES = {
    ZkErrorCode.BAD_VERSION,
    ZkErrorCode.NO_NODE,
    ZkErrorCode.NODE_EXISTS,
    ZkErrorCode.NOT_EMPTY,
}
_FENCED = OpOutcome(OutcomeKind.FENCED, reason="another controller has taken over")

_Batch = list[tuple[Chain, int]]
"""What one multi carries: chains, and how many of each chain's writes."""


class WriteCall:
    """One call of FencedWriter.write: what waits, what is in flight, what is settled."""

    def __init__(
        self,
        session: ZkSession,
        check: Check,
        ops: Sequence[WriteOp],
        limits: WriteLimits,
    ) -> None:
        self._session = session
        self._check = check
        self._ops = ops
        self._max_ops = limits.max_ops_per_multi
        self._max_in_flight = limits.max_in_flight
        self._max_bytes = limits.jute_maxbuffer // 2
        self._max_op_bytes = limits.jute_maxbuffer - _AROUND_A_WRITE_BYTES
        self._chroot_bytes = len(session.chroot)
        self._timeout_s = session.session_timeout_ms / 1000
        self._outcomes: list[OpOutcome | None] = [None] * len(ops)
        self._waiting: deque[Chain] = deque()
        self._in_flight: deque[tuple[_Batch, Pending[list[OpResult]]]] = deque()
        self._unfinished: dict[str, Chain] = {}
        self._settled = 0
        self._deadline = 0.0

    def run(self) -> list[OpOutcome]:
        """Make the writes, as FencedWriter.write says."""
        self._progressed()
        self._wait_for_connection()
        session_id = self._session.session_id
        try:
            self._write(session_id)
            self._read_rejected()
        except ZooKeeperUnreachable as error:
            raise SessionLost(str(error)) from error
        return [_FENCED if outcome is None else outcome for outcome in self._outcomes]

    def _read_rejected(self) -> None:
        """Say what the znodes are of which writes were rejected."""
        for place, outcome in enumerate(self._outcomes):
            if outcome is not None and outcome.kind is OutcomeKind.REJECTED:
                try:
                    current = self._session.get(self._ops[place].path)
                except RequestFailed:
                    continue
                self._outcomes[place] = replace(outcome, current=current)

    def _write(self, session_id: int | None) -> None:
        sizes = [op_bytes(op) + self._chroot_bytes for op in self._ops]
        straight = max(sizes, default=0) <= self._max_op_bytes
        if straight and len({op.path for op in self._ops}) == len(self._ops):
            fenced = self._send_straight(sizes, session_id)
        else:
            fenced = False
            self._waiting.extend(self._chained(range(len(self._ops))))
        while self._waiting or self._in_flight:
            while not fenced and self._waiting and len(self._in_flight) < self._max_in_flight:
                self._send()
            if not self._in_flight:
                return
            batch, pending = self._in_flight.popleft()
            try:
                fenced = self._finish(batch, pending.result(self._timeout_s)) or fenced
            except ConnectionLost:
                fenced = self._recover(batch, session_id) or fenced

    def _send_straight(self, sizes: Sequence[int], session_id: int | None) -> bool:
        """Send all writes, to a znode each, as they come; True when a multi was fenced.

        Chains are made only of what failed, was not answered or not sent: where nothing goes
        wrong, they would take most of the time.
        """
        parts = deque(_parts(sizes, self._max_ops, self._max_bytes))
        in_flight: deque[tuple[range, Pending[list[OpResult]]]] = deque()
        failures: list[tuple[_Batch, int, int]] = []
        fenced = False
        while in_flight or (parts and not fenced):
            while parts and not fenced and len(in_flight) < self._max_in_flight:
                part = parts.popleft()
                ops = [self._check, *self._ops[part.start : part.stop]]
                in_flight.append((part, self._session.multi_async(ops)))
            part, pending = in_flight.popleft()
            try:
                results = pending.result(self._timeout_s)
            except ConnectionLost:
                unsent = () if fenced else parts
                fenced = self._fall_back(part, in_flight, unsent, session_id) or fenced
                break
            failed = first_failure(results)
            if failed is None:
                self._take_straight(part, results)
            elif failed == 0:
                fenced = True
            else:
                failures.append((self._batch(part), failed, results[failed][0]))
        for batch, failed, code in failures:
            self._blame(batch, failed, code)
            self._judge(batch)
        return fenced

    def _take_straight(self, part: range, results: list[OpResult]) -> None:
        self._outcomes[part.start : part.stop] = map(_written, results[1:])
        self._settled += len(part)
        self._progressed()

    def _fall_back(
        self,
        unanswered: range,
        in_flight: Iterable[tuple[range, Pending[list[OpResult]]]],
        unsent: Iterable[range],
        session_id: int | None,
    ) -> bool:
        """After a lost connection: go on with chains; True when a multi was fenced."""
        unknown = self._batch(unanswered)
        self._in_flight.extend((self._batch(part), pending) for part, pending in in_flight)
        for part in unsent:
            self._waiting.extend(self._chained(part))
        return self._recover(unknown, session_id)

    def _batch(self, places: range) -> _Batch:
        return [(chain, 1) for chain in self._chained(places)]

    def _chained(self, places: range) -> list[Chain]:
        """Return the chains of some writes, which are unfinished from now on."""
        chains: dict[str, Chain] = {}
        for place in places:
            op = self._ops[place]
            size = op_bytes(op) + self._chroot_bytes
            if size > self._max_op_bytes:
                self._outcomes[place] = OpOutcome(
                    OutcomeKind.REJECTED,
                    reason=f"{op.path}: {size} bytes, but ZooKeeper takes at most"
                    f" {self._max_op_bytes} (jute.maxbuffer)",
                )
                continue
            chain = chains.get(op.path)
            if chain is None:
                chain = chains[op.path] = Chain(op.path)
            chain.add(place, op)
        self._unfinished |= chains
        return list(chains.values())

    def _send(self) -> None:
        ops: list[MultiOp] = [self._check]
        batch: _Batch = []
        room = self._max_bytes
        while self._waiting and len(ops) <= self._max_ops:
            chain = self._waiting[0]
            if chain.alone and batch:
                break
            free = self._max_ops + 1 - len(ops)
            fitting, size = chain.fitting(free, room)
            if not fitting and not batch:  # one large write goes alone
                fitting, size = chain.fitting(1, self._max_op_bytes)
            if not fitting:
                break
            self._waiting.popleft()
            ops += fitting
            batch.append((chain, len(fitting)))
            room -= size + self._chroot_bytes * len(fitting)
            if chain.alone:
                break
        self._in_flight.append((batch, self._session.multi_async(ops)))

    def _finish(self, batch: _Batch, results: list[OpResult]) -> bool:
        """Take the results of one multi; True when it was fenced."""
        failed = first_failure(results)
        if failed is None:
            start = 1
            for chain, count in batch:
                self._settle(chain, chain.take(results[start : start + count]))
                start += count
            self._progressed()
            self._requeue(batch)
            return False
        if failed == 0:
            return True
        self._blame(batch, failed, results[failed][0])
        self._judge(batch)
        return False

    def _blame(self, batch: _Batch, failed: int, code: int) -> None:
        """Settle the chain that made a multi fail, where reading its znode would not tell why."""
        number, offset = _culprit(batch, failed - 1)
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

    def _is_hopeless(self, before: _Batch, chain: Chain, code: int) -> bool:
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

    def _recover(self, batch: _Batch, session_id: int | None) -> bool:
        """After a lost connection: find out which of the unanswered multis were applied.

        True when a multi that was answered before was fenced.
        """
        unknown = list(batch)
        fenced = False
        while self._in_flight:
            later, pending = self._in_flight.popleft()
            try:
                fenced = self._finish(later, pending.result(self._timeout_s)) or fenced
            except ConnectionLost:
                unknown += later
        self._wait_for_connection()
        try:
            self._session.sync()
            if self._session.session_id != session_id:  # only now it is known which one this is
                raise SessionLost("the session expired while writes were in flight")
            self._judge(unknown)
        except ZooKeeperUnreachable as error:
            raise SessionLost(str(error)) from error
        return fenced

    def _judge(self, batch: _Batch) -> None:
        """Settle by what the znodes are now, and let the rest be tried again."""
        chains = [chain for chain, _ in batch if not chain.finished]
        try:
            columns = read_many(self._session, [chain.path for chain in chains])
        except RequestFailed:
            for chain in chains:
                self._settle_read(chain, chain.judge)
        else:
            for row, chain in enumerate(chains):
                self._settle(chain, chain.judge(columns.znode(row)))
        self._progressed()
        self._requeue(batch)

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

    def _requeue(self, batch: _Batch) -> None:
        self._waiting.extend(chain for chain, _ in batch if not chain.finished)

    def _settle(self, chain: Chain, settled: Iterable[Settled]) -> None:
        for place, outcome in settled:
            self._outcomes[place] = outcome
            self._settled += 1
        if chain.finished:
            self._unfinished.pop(chain.path, None)

    def _progressed(self) -> None:
        self._deadline = time.monotonic() + self._timeout_s

    def _wait_for_connection(self) -> None:
        try:
            self._session.wait_until_held(self._deadline - time.monotonic())
        except ZooKeeperUnreachable as error:
            raise SessionLost(
                f"no write was possible for {self._timeout_s:g} s, the session timeout: {error}"
            ) from error


def _parts(sizes: Sequence[int], max_ops: int, max_bytes: int) -> Iterator[range]:
    """Cut writes of these sizes into multis; one large write goes alone."""
    start, room = 0, max_bytes
    for place, size in enumerate(sizes):
        if place > start and (place - start == max_ops or size > room):
            yield range(start, place)
            start, room = place, max_bytes
        room -= size
    if sizes:
        yield range(start, len(sizes))


@lru_cache(maxsize=1024)
def _written_at(version: int) -> OpOutcome:
    return OpOutcome(OutcomeKind.WRITTEN, version)


def _written(result: OpResult) -> OpOutcome:
    return _written_at(result[1])


def _culprit(batch: _Batch, position: int) -> tuple[int, int]:
    """Return (chain number, write of it) at a position of a multi, its check not counted."""
    for number, (_, count) in enumerate(batch):
        if position < count:
            return number, position
        position -= count
    raise IndexError(f"a multi has no write at {position}")


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
