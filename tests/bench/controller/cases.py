"""The cases, in the order in which one run does them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from streaming.zk.ops import Create, Delete
from streaming.zk.znodes import parse_partition_states, topic_path
from streaming.zk.znodes.controller import CONTROLLER_PATH
from tests.bench.controller.leaders import last_replica_moved, shut_down
from tests.bench.controller.measure import Result, measured
from tests.bench.controller.stage import MAX_PACKET_BYTES, Stage
from tests.bench.controller.systems import System
from tests.bench.load import round_robin, topics

ONE = [2]
TEN = list(range(3, 31, 3))
SHUT_DOWN = 4
_ELECTION_TIMEOUT_S = 120.0
_POLL_S = 0.02
_MULTI_BYTES = MAX_PACKET_BYTES // 2

Cases = Iterator[tuple[str, Result]]


class Run:
    """One controller on one stage."""

    def __init__(self, stage: Stage, system: System) -> None:
        self._stage = stage
        self._system = system
        self._alive = set(stage.broker_ids)
        self._since_ns = 0

    def loaded(self) -> Cases:
        """A cluster that is there: start, take-over, failures, returns, a shutdown."""
        yield "cold_start", self._cold_start()
        yield "take_over", self._measure("take_over", self._depose, self._all_loaded)
        yield "one_fails", self._measure("one_fails", lambda: self._drop(ONE), self._out_of_isr)
        yield "ten_fail", self._measure("ten_fail", lambda: self._drop(TEN), self._out_of_isr)
        yield (
            "ten_return",
            self._measure("ten_return", lambda: self._register(TEN), self._all_told),
        )
        # What this one's return leads to must be over, or it counts for the shutdown.
        self._measure("one_returns", lambda: self._register(ONE), self._all_told)
        port = self._system.port
        yield (
            "shutdown",
            self._measure("shutdown", lambda: shut_down(self._stage, port, SHUT_DOWN)),
        )

    def moves(self) -> Cases:
        """A cluster that is there, whose partitions move."""
        self._cold_start()
        moves = last_replica_moved(self._stage)
        yield "moves_start", self._measure("moves_start", moves.start, moves.under_way)
        port = self._system.port
        yield (
            "moves_end",
            self._measure("moves_end", lambda: moves.alter_isrs(port), moves.over),
        )

    def creation(self) -> Cases:
        """A cluster without topics, and then all of them at once."""
        self._measure("start", self._start)
        yield "creation", self._measure("creation", self._create, self._created)

    def _measure(
        self, case: str, trigger: Callable[[], int], done: Callable[[], bool] = lambda: True
    ) -> Result:
        return measured(self._stage, self._system, case, trigger, done)

    def _cold_start(self) -> Result:
        result = self._measure("cold_start", self._start, self._all_loaded)
        elected_s = self._stage.controller_since_ms() / 1e3 - self._system.started_ns / 1e9
        result.figures["from_process_start_s"] = elected_s + result.figures["to_last_rpc_s"]
        return result

    def _start(self) -> int:
        """Start the controller; timed from its election."""
        self._since_ns = time.time_ns()
        self._system.start()
        return self._election_after(0)

    def _depose(self) -> int:
        """Take the role away: the same processes, warm now, take it again."""
        self._since_ns = time.time_ns()
        before_ms = self._stage.controller_since_ms()
        self._stage.session.multi([Delete(CONTROLLER_PATH)])
        return self._election_after(before_ms)

    def _election_after(self, before_ms: int) -> int:
        deadline = time.monotonic() + _ELECTION_TIMEOUT_S
        while (since_ms := self._stage.controller_since_ms() or 0) <= before_ms:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no election, see {self._stage.folder}")
            time.sleep(_POLL_S)
        return since_ms * 1_000_000

    def _drop(self, ids: list[int]) -> int:
        self._since_ns = time.time_ns()
        self._alive -= set(ids)
        self._stage.drop(ids)
        return self._since_ns

    def _register(self, ids: list[int]) -> int:
        self._since_ns = time.time_ns()
        self._alive |= set(ids)
        self._stage.register(ids)
        return self._since_ns

    def _create(self) -> int:
        """Write all topics, in one transaction if ZooKeeper takes so many bytes."""
        ops, size = [], 0
        self._since_ns = time.time_ns()
        for _, topic, znode, _ in topics(
            round_robin(self._stage.partitions, len(self._stage.broker_ids))
        ):
            if size > _MULTI_BYTES:
                self._stage.session.multi(ops)
                ops, size = [], 0
            ops.append(Create(topic_path(topic), znode))
            size += len(znode) + 100
        since_ns = time.time_ns()
        self._stage.session.multi(ops)
        return since_ns

    def _created(self) -> bool:
        return not (self._stage.states().version < 0).any() and self._all_told()

    def _all_told(self) -> bool:
        return set(self._stage.summary(self._since_ns)["brokers"]) >= self._alive

    def _all_loaded(self) -> bool:
        """Whether brokers were told what they lead and follow: Kafka's controller tells them of one
        another first, and then reads ZooKeeper for longer than a silence.
        """
        return set(self._stage.summary(self._since_ns)["loaded"]) >= self._alive

    def _out_of_isr(self) -> bool:
        states = self._stage.states()
        isr = parse_partition_states(states.data, states.version.tolist()).isr
        dead = sorted(set(self._stage.broker_ids) - self._alive)
        return not np.isin(isr, dead).any()
