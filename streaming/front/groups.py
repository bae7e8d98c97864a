"""What the front has to coordinate groups: the log's leadership and what is answered from it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

from streaming.gateway import not_leader
from streaming.gateway.calls import Call, Handler
from streaming.gateway.ports import Decider
from streaming.image.cluster_image import ClusterImage
from streaming.offsets.history import History
from streaming.offsets.leader import OffsetsLeader
from streaming.offsets.replica_fetch import ReplicaFetch
from streaming.offsets.take_over import TakeOver
from streaming.offsets.upkeep import IsrUpkeep
from streaming.settings import Settings
from streaming.wire.messages import ApiKey
from streaming.wire.schema_codec import Body

logger = logging.getLogger(__name__)

_CONSUMER = -1


class Groups:
    """The parts that work when groups.takeover.enable is true, on the front's event loop."""

    def __init__(
        self,
        settings: Settings,
        decider: Decider,
        image: Callable[[], ClusterImage | None],
        is_controller: Callable[[], bool],
        has_job: Callable[[], bool],
    ) -> None:
        """Make the parts; `start` lets them work."""
        self._enabled = settings.groups_takeover_enable
        self._timeout_s = settings.request_timeout_ms / 1000
        loop = asyncio.get_running_loop()
        self.leader = OffsetsLeader(loop.time)
        self._history = History(self.leader, image, settings.controller_listener, self._timeout_s)
        self._fetch = ReplicaFetch(self.leader, image, self._history.read)
        upkeep = IsrUpkeep(
            self.leader,
            decider,
            lag_max_s=settings.replica_lag_time_max_ms / 1000,
            timeout_s=self._timeout_s,
        )
        self._take_over = TakeOver(
            self.leader,
            decider,
            upkeep,
            self,
            is_controller=is_controller,
            has_job=has_job,
            timeout_s=self._timeout_s,
        )
        self._task: asyncio.Task[None] | None = None

    def handlers(self) -> Mapping[int, Handler]:
        """Return what the gateway serves because of groups."""
        return {ApiKey.FETCH: self.fetch} if self._enabled else {}

    async def fetch(self, call: Call) -> Body:
        """Answer followers; consumers are told that we lead nothing that they may read."""
        state = call.body["replica_state"]
        replica = call.body["replica_id"] if state is None else state["replica_id"]
        if replica > _CONSUMER:
            return await self._fetch.handle(call, replica)
        return await not_leader.fetch(call)

    def look_at(self, image: ClusterImage) -> None:
        """Take an image that has changed."""
        if self._enabled:
            self.leader.look_at(image)

    def job_came_back(self) -> None:
        """Take everything over again: what was decided meanwhile may not have come here."""
        self._take_over.restart()

    def start(self) -> None:
        """Begin to take groups over."""
        if self._enabled:
            self._task = asyncio.create_task(self._take_over.run())

    async def stop(self) -> None:
        """Stop leading."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._history.close()

    def elected(self, partitions: dict[int, int]) -> None:
        logger.info("leading __consumer_offsets: %s", partitions)

    async def load(self, partition: int, epoch: int, end: int) -> None:
        read = 0
        async for data in self._history.whole(partition, end):
            read += len(data)
        logger.info("partition %d begins at %d; read %d bytes", partition, end, read)

    def resigned(self) -> None:
        logger.info("leading __consumer_offsets no more")
