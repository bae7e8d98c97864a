"""Members of groups, each on a connection of its own."""

from __future__ import annotations

import asyncio
from typing import Any

from state.protocol_errors import ProtocolError
from streaming.wire.apis import ApiKey
from tests.unit.front.group_requests import GROUP, joining
from tests.unit.gateway.support import Client, Rig


class Member:
    """A member of a group on a connection of its own."""

    def __init__(self, client: Client, group: str = GROUP) -> None:
        self.client = client
        self.group = group
        self.id = ""
        self.generation = -1

    async def join(self, instance: str | None = None, **more: Any) -> None:
        """Join, and wait for the generation."""
        body = joining(self.id, instance, self.group) | more
        answer = await self.client.ask(ApiKey.JOIN_GROUP, 9, body)
        self.id = answer["member_id"]
        if answer["error_code"] == ProtocolError.MEMBER_ID_REQUIRED:
            await self.join(instance, **more)
            return
        assert answer["error_code"] == 0, answer
        self.generation = answer["generation_id"]

    async def sync(self) -> None:
        """Ask for the assignment, which is given to nobody else."""
        answer = await self.ask_sync(assignments=[{"member_id": self.id, "assignment": b"mine"}])
        assert answer["error_code"] == 0, answer

    async def ask_sync(self, **more: Any) -> dict[str, Any]:
        """Send a SyncGroup and return the answer."""
        body = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "protocol_type": "consumer",
            "protocol_name": "range",
        }
        return await self.client.ask(ApiKey.SYNC_GROUP, 5, body | more)

    async def beat(self) -> int:
        """Send a heartbeat and return the error."""
        body = {"group_id": self.group, "generation_id": self.generation, "member_id": self.id}
        error: int = (await self.client.ask(ApiKey.HEARTBEAT, 4, body))["error_code"]
        return error


async def alone(rig: Rig, group: str = GROUP) -> Member:
    """Return the only member of a stable group."""
    one = Member(await rig.client(), group)
    await one.join()
    await one.sync()
    return one


async def pair(rig: Rig) -> tuple[Member, Member]:
    """Return two members of a stable group."""
    one, other = await alone(rig), Member(await rig.client())
    joins = asyncio.create_task(other.join())
    await until_told_to_rejoin(one)
    await one.join()
    await joins
    await asyncio.gather(one.sync(), other.sync())
    return one, other


async def until_told_to_rejoin(one: Member) -> None:
    async with asyncio.timeout(20):
        while await one.beat() != ProtocolError.REBALANCE_IN_PROGRESS:
            await asyncio.sleep(0)
