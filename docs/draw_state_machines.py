"""Draws docs/state-machines.md from the tables of legal moves.

`python -m docs.draw_state_machines` writes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from pathlib import Path

from state.partitions.legal import (
    LEGAL_PREVIOUS_PARTITION_STATES,
    LEGAL_PREVIOUS_REPLICA_STATES,
)

PAGE = Path(__file__).parent / "state-machines.md"

HEAD = """# State machines of partitions and replicas

Drawn from the tables in `state/partitions/legal.py` by `python -m docs.draw_state_machines`. A move
that is not drawn is refused: it is reported as `refuse_transition` and changes nothing.
"""

PARTITIONS = """
## Partitions

A partition without a state znode is New, and stays so until one of its replicas is live. Online to
Online is an election. Offline means that nobody can lead.
"""

REPLICAS = """
## Replicas

When a controller starts, a replica is Online if its broker is live and its disk is not known to
have failed, else DeletionIneligible; the latter are then moved to Offline.

When the deletion of a topic starts, its partitions go Offline and NonExistent, its replicas Offline
and DeletionStarted, and from there where their broker's answer says. One that is not online, or
that could not be deleted, is DeletionIneligible and halts the deletion. When the others are done it
goes Offline; a broker of the topic that comes back lets it be tried again. When all are
DeletionSuccessful the topic is gone. Who is in sync but not listed is stopped too, and not waited
for.
"""


def render() -> str:
    """Return the page."""
    partitions = "\n".join(_diagram(LEGAL_PREVIOUS_PARTITION_STATES))
    replicas = "\n".join(_diagram(LEGAL_PREVIOUS_REPLICA_STATES))
    return "\n".join([HEAD + PARTITIONS, partitions, REPLICAS, replicas, ""])


def _diagram(table: Mapping[IntEnum, frozenset[IntEnum]]) -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {_name(min(table))}"
    for target in sorted(table):
        for previous in sorted(table[target]):
            yield f"    {_name(previous)} --> {_name(target)}"
    yield "```"


def _name(state: IntEnum) -> str:
    return "".join(word.title() for word in state.name.split("_"))


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
