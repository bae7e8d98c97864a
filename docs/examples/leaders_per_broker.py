"""A downstream consumer: a live table of how many partitions each broker leads.

    python docs/examples/leaders_per_broker.py .helmstream/decisions [--once] [--state leaders.json]

It folds the decision log (docs/decision-log.md): the brokers from update_brokers, the partitions
from change_partitions, and forget_topic. With --state it keeps what it has folded and how far in
one file, so that it may be killed at any point: it goes on where the file says, and decisions that
are in the log twice count once. Where retention has taken what comes next, it starts afresh: what
leads what is not known then until somebody tells everything again, as docs/decision-log.md says.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.live import Live
from rich.table import Table

from state.opened_decisions import open_body
from streaming.log.api import LogRecord, OffsetOutOfRange
from streaming.log.decision_reader import each_once
from streaming.log.decision_writer import RecordId, record_id
from streaming.log.embedded import EmbeddedLogReader

POLL_S = 0.2
UNKNOWN = "not known yet: the log has no update_brokers with complete"


class Leaders:
    """The leader of every partition, folded from decisions.

    known: a fresh start was folded, and all since. next_offset: of the decision log, where to go
    on. last_id: of the last decision folded.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin with nothing."""
        self.known = False
        self.brokers: list[int] = []
        self.leaders: dict[str, dict[str, int]] = {}  # topic -> partition -> leader
        self.next_offset: int | None = None
        self.last_id: RecordId | None = None

    def fold(self, record: LogRecord) -> None:
        """Take the next decision."""
        body = open_body(record.kind, record.payload)
        if record.kind == "update_brokers":
            assert isinstance(body, dict)
            self.brokers = [broker["id"] for broker in body["brokers"]]
            if body["complete"]:  # a fresh start: nothing told before counts
                self.leaders.clear()
                self.known = True
        elif record.kind == "forget_topic":
            assert isinstance(body, dict)
            self.leaders.pop(body["topic"], None)
        elif record.kind == "change_partitions":
            for row in body:
                self._change(row)
        self.last_id = record_id(record)

    def _change(self, row: Any) -> None:
        partitions = self.leaders.setdefault(row["topic"], {})
        if "deleted" in row["actions"]:
            partitions.pop(str(row["partition"]), None)
        else:
            partitions[str(row["partition"])] = row["leader"]

    def per_broker(self) -> dict[int, int]:
        """Return how many partitions each registered broker leads; -1: those without a leader.

        Meaningless unless they are known.
        """
        counts = Counter(one for topic in self.leaders.values() for one in topic.values())
        return {broker: counts[broker] for broker in [*self.brokers, -1]}

    def save(self, file: Path) -> None:
        """Write everything at once: what is folded and how far belong together."""
        kept = {
            "known": self.known,
            "brokers": self.brokers,
            "leaders": self.leaders,
            "next_offset": self.next_offset,
            "last_id": None if self.last_id is None else str(self.last_id),
        }
        temporary = file.with_suffix(".tmp")
        temporary.write_bytes(orjson.dumps(kept))
        temporary.replace(file)

    @classmethod
    def load(cls, file: Path) -> Leaders:
        """Return what was saved, or an empty table."""
        found = cls()
        if file.exists():
            kept = orjson.loads(file.read_bytes())
            found.known = kept["known"]
            found.brokers, found.leaders = kept["brokers"], kept["leaders"]
            found.next_offset = kept["next_offset"]
            if kept["last_id"] is not None:
                found.last_id = RecordId(*map(int, kept["last_id"].split(":")))
        return found


def catch_up(leaders: Leaders, reader: EmbeddedLogReader) -> int:
    """Fold all that is new in the log; return how many decisions that were.

    What retention took before it was folded leaves a gap: everything known is given up then.
    """
    while True:
        try:
            return fold_new(leaders, reader)
        except OffsetOutOfRange:
            leaders.forget()


def fold_new(leaders: Leaders, reader: EmbeddedLogReader) -> int:
    """As `catch_up`; raises OffsetOutOfRange when the log does not have what comes next."""
    start = reader.start_offset() if leaders.next_offset is None else leaders.next_offset
    end = reader.end_offset()
    count = 0
    for record in each_once(reader.read(start, end), leaders.last_id):
        leaders.fold(record)
        count += 1
    leaders.next_offset = end
    return count


def table_of(leaders: Leaders) -> Table:
    """Return the table to show."""
    if not leaders.known:
        return Table(title=f"{UNKNOWN} as of decision {leaders.last_id}")
    table = Table("broker", "leads", title=f"up to decision {leaders.last_id}")
    for broker, count in leaders.per_broker().items():
        table.add_row("none" if broker == -1 else str(broker), str(count))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path, help="the folder of the decision log")
    parser.add_argument("--once", action="store_true", help="stop at the end, print as JSON")
    parser.add_argument("--state", type=Path, help="file to go on from")
    asked = parser.parse_args()
    leaders = Leaders.load(asked.state) if asked.state else Leaders()
    with EmbeddedLogReader(asked.log) as reader:
        if asked.once:
            catch_up(leaders, reader)
            if not leaders.known:
                sys.exit(UNKNOWN)
            Console().out(
                orjson.dumps(leaders.per_broker(), option=orjson.OPT_NON_STR_KEYS).decode()
            )
        else:
            with Live(table_of(leaders)) as screen:
                while True:
                    if catch_up(leaders, reader):
                        screen.update(table_of(leaders))
                        if asked.state:
                            leaders.save(asked.state)
                    time.sleep(POLL_S)
    if asked.state:
        leaders.save(asked.state)


if __name__ == "__main__":
    main()
