"""Commits while the brokers in sync do not take what is appended: so many are kept, and no more. Of
too few brokers in sync none is.
"""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from state.protocol_errors import ProtocolError
from streaming.front.groups import direct_commits
from streaming.offsets import leader
from streaming.wire.apis import ApiKey
from tests.unit.front.group_requests import (
    GROUP,
    commit,
    fetched,
    in_transaction,
    member_of,
    play,
)
from tests.unit.front.group_world import GroupWorld
from tests.unit.gateway.support import Rig

OLD = 5
"""A version of OffsetCommit that is always decided."""


@pytest.mark.parametrize("version", [OLD, 9])
def test_a_partition_of_which_much_is_not_safe_takes_no_commit(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        log = world.leader.logs[world.groups.partition_of(GROUP)]
        world.following = False
        with monkeypatch.context() as impatient:
            impatient.setattr(direct_commits, "COMMIT_TIMEOUT_S", 0.05)
            assert await commit(client, joined) == ProtocolError.REQUEST_TIMED_OUT
        monkeypatch.setattr(leader, "UNSAFE_MAX_BYTES", log.unsafe_bytes - 1)
        end, events = log.end, len(world.events)
        heard = Mock(wraps=world.sessions.heard)
        monkeypatch.setattr(world.sessions, "heard", heard)
        refused = ProtocolError.COORDINATOR_NOT_AVAILABLE
        assert await commit(client, joined, 8, version) == refused
        assert heard.called == (version != OLD), "it is a heartbeat where it is checked"
        answer = await client.ask(ApiKey.TXN_OFFSET_COMMIT, 4, in_transaction())
        assert answer["topics"][0]["partitions"][0]["error_code"] == refused
        assert (log.end, len(world.events)) == (end, events)
        world.resume_following()
        assert await commit(client, joined, 9, version) == 0
        assert (await fetched(client))["committed_offset"] == 9

    play(scenario)


@pytest.mark.parametrize("version", [OLD, 9])
def test_a_partition_with_too_few_brokers_in_sync_takes_no_commit(version: int) -> None:
    """Groups go on meanwhile, as far as nothing has to be written."""

    async def scenario(world: GroupWorld, rig: Rig) -> None:
        client = await rig.client()
        joined = await member_of(client)
        log = world.leader.logs[world.groups.partition_of(GROUP)]
        world.min_insync_replicas = 2
        assert await commit(client, joined, 7, version) == 0
        world.cluster.happen("broker_registrations_changed", "", {"unregistered": [2]})
        world.look()
        end, events = log.end, len(world.events)
        refused = ProtocolError.COORDINATOR_NOT_AVAILABLE
        assert await commit(client, joined, 8, version) == refused
        answer = await client.ask(ApiKey.TXN_OFFSET_COMMIT, 4, in_transaction())
        assert answer["topics"][0]["partitions"][0]["error_code"] == refused
        assert (log.end, len(world.events)) == (end, events)
        assert (await fetched(client))["committed_offset"] == 7
        world.min_insync_replicas = 1
        assert await commit(client, joined, 9, version) == 0
        assert (await fetched(client))["committed_offset"] == 9

    play(scenario)
