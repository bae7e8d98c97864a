"""The differences that are meant, each as narrow as its line in docs/differences.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import orjson

from streaming.zk.znodes import partition_state_path, topic_deletion_path
from tests.differential.chooser import NO_LEADER
from tests.differential.compare import CURRENT, Difference, Look
from tests.differential.steps import REASSIGNMENT_PATH

Known = Callable[[Difference, Look], bool]

_HOSTED = re.compile(r"broker \d+, hosted of (?P<topic>.+)-(?P<partition>\d+)")
_STOPPED = re.compile(r"broker (?P<broker>\d+), stopped (?P<topic>.+)-(?P<partition>\d+)")
_STATE = re.compile(r"/brokers/topics/(?P<name>[^/]+)/partitions/\d+/state")


def _request_list_unchanged(found: Difference, now: Look) -> bool:
    """Both have the same list; Kafka's controller wrote it again."""
    return found.where == f"{REASSIGNMENT_PATH}, rise of the version" and found.ours < found.stock


def _hosted_in_deletion(found: Difference, now: Look) -> bool:
    """Kafka's controller told a broker to host what it is to delete."""
    told = _HOSTED.fullmatch(found.where)
    if told is None or found.ours is not None:
        return False
    return topic_deletion_path(told["topic"]) in now.stock


def _started_in_deletion(found: Difference, now: Look) -> bool:
    """The same, seen from the order to stop that came before."""
    told = _STOPPED.fullmatch(found.where)
    if told is None or found.stock is not None:
        return False
    at = (told["topic"], int(told["partition"]))
    hosted = at in now.stock_told[int(told["broker"])].hosted
    return hosted and topic_deletion_path(told["topic"]) in now.stock


def _told_the_outcome(found: Difference, now: Look) -> bool:
    """Kafka's controller told a broker a state that it replaced within the event, and then not the
    last one: the broker's replica is on a failed disk. Ours told it what the znode holds.
    """
    told = _HOSTED.fullmatch(found.where)
    if told is None or found.stock is None or found.ours is None:
        return False
    node = now.ours.get(partition_state_path(told["topic"], int(told["partition"])))
    state = {"leader": None, "isr": None} if node is None else orjson.loads(node.content)
    is_outcome = (found.ours["leader"], found.ours["isr"]) == (state["leader"], state["isr"])
    return is_outcome and found.ours["behind"] == CURRENT and found.stock["behind"] != CURRENT


def _left_the_isr_in_deletion(found: Difference, now: Look) -> bool:
    """Ours wrote, under its controller epoch, that the last replica in sync is gone too."""
    path = found.where.partition(", rise of ")[0]
    topic = _STATE.fullmatch(path)
    if topic is None or not {path, topic_deletion_path(topic["name"])} <= now.stock.keys():
        return False
    if path not in now.ours:
        return False
    stock, ours = (orjson.loads(nodes[path].content) for nodes in (now.stock, now.ours))
    same = stock | {"controller_epoch": 0} == ours | {"controller_epoch": 0}
    return same and ours["leader"] == NO_LEADER and (path == found.where or found.stock == 0)


KNOWN: Sequence[tuple[str, Known]] = (
    (
        "a reassignment ends or is asked for while others stand in `/admin/reassign_partitions`",
        _request_list_unchanged,
    ),
    ("LeaderAndIsr about topics that are being deleted", _hosted_in_deletion),
    ("LeaderAndIsr about topics that are being deleted", _started_in_deletion),
    ("a replica of a topic that is being deleted loses its broker", _left_the_isr_in_deletion),
    ("several changes to a partition in one event", _told_the_outcome),
)
"""What the first column of the table says, and how it shows."""


def sorted_out(found: Iterable[Difference], now: Look) -> tuple[list[Difference], set[str]]:
    """Return the differences that nobody knows, and the names of those that are known."""
    unknown, names = [], set()
    for one in found:
        name = next((name for name, known in KNOWN if known(one, now)), None)
        if name is None:
            unknown.append(one)
        else:
            names.add(name)
    return unknown, names
