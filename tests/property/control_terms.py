"""Our node is elected again: what was decided before and is not written yet is fenced, and the
cluster is loaded as it is in ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import orjson

from streaming.zk.ops import Check, MultiOp
from streaming.zk.znodes import epoch_bytes
from streaming.zk.znodes.controller import CONTROLLER_EPOCH_PATH
from streaming.zk.znodes.paths import DELETE_TOPICS_PATH
from tests.fixtures.observed_topics import topic_now
from tests.fixtures.story import endpoints
from tests.property.control_actions import topics
from tests.property.control_checks import served_places
from tests.property.control_loop import EPOCH_VERSION, ControlLoop, stored_state
from tests.property.control_names import ObservedLoop


def claim(loop: ControlLoop) -> None:
    """Raise the controller epoch; the election is not in the log yet."""
    loop.store.change(CONTROLLER_EPOCH_PATH, epoch_bytes(_epoch(loop) + 1))


def load(loop: ControlLoop, gone: str = "") -> None:
    """Append the election, and the brokers and topics that there are; gone: a topic that is found
    and removed amid that.
    """
    loop.log.elected(_epoch(loop), _version(loop))
    registered = [
        {"id": one.id, "epoch": one.epoch, "rack": None, "endpoints": endpoints(10 + one.id)}
        for one in loop.live()
    ]
    loop.log.write("broker_registrations_changed", registered=registered)
    if gone:
        loop.log.remove(gone, [[1]])
    there = topics(loop)
    for topic in there:
        loop.log.write("topic_observed", topic, **topic_now(loop.store, topic))
    for topic in loop.store.children(DELETE_TOPICS_PATH):
        loop.log.write("topic_deletion_requested", topic, topic=topic)
    loop.log.write("resync_completed", topics=len(there))


def has_loaded(loop: ControlLoop) -> bool:
    """Whether the newest election is in the log."""
    elected = (one for one in reversed(loop.log.events) if one.kind == "controller_elected")
    version: int = orjson.loads(next(elected).payload)["epoch_zk_version"]
    return version == _version(loop)


def claim_behind(loop: ControlLoop, path: str | None = None, count: int = 1) -> None:
    """Raise the controller epoch behind a multi that comes: of those that write a path, or
    anything, the one with this number.
    """
    left = count

    def behind_multi(ops: Sequence[MultiOp]) -> None:
        nonlocal left
        left -= any(path in (None, one.path) and not isinstance(one, Check) for one in ops)
        if left == 0:
            loop.store.behind_multi = None
            claim(loop)

    loop.store.behind_multi = behind_multi


def finish_term(loop: ObservedLoop) -> None:
    """Load what was claimed."""
    loop.store.behind_multi = None
    if not has_loaded(loop):
        load(loop)
        loop.loaded()


def renew_term(loop: ObservedLoop, a: int, b: int) -> None:
    """Our node is elected again; a says whether that is in the log at once, or later."""
    if has_loaded(loop):
        claim(loop)
    if a % 3 == 0:
        finish_term(loop)


def overtake(loop: ObservedLoop, a: int, b: int) -> None:
    """Our node is elected again amid the writes of a batch, which is in the log later."""
    if has_loaded(loop):
        claim_behind(loop, count=1 + a % 4)


TERM_ACTIONS: Mapping[str, Callable[[ObservedLoop, int, int], None]] = {
    one.__name__: one for one in (renew_term, overtake)
}


def has_outdated_leader(loop: ControlLoop) -> bool:
    """Whether a leader has an older version of its state than is stored: it restarted before we
    knew of its last ISR change, and a new term came before its correction. A term raises no leader
    epoch, so it gets the version with the next one.
    """
    if _version(loop) == EPOCH_VERSION:
        return False
    for place in served_places(loop):
        state = stored_state(loop, place)
        broker = None if state is None else loop.brokers.get(state["leader"])
        known = None if broker is None else broker.replicas.get(place)
        if state is not None and known is not None and known.version < state["version"]:
            return True
    return False


def _epoch(loop: ControlLoop) -> int:
    epoch: int = orjson.loads(loop.store.nodes[CONTROLLER_EPOCH_PATH].data)
    return epoch


def _version(loop: ControlLoop) -> int:
    return loop.store.nodes[CONTROLLER_EPOCH_PATH].version
