"""The tables of a benchmark of controllers, made from its JSON lines.

`python -m tests.bench.controller.tables FILE` makes them again, as Markdown, from the lines that a
run wrote to stdout. A cell is the median, with the least and the most of several runs in brackets.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from tests.bench.controller.systems import HELMSTREAM
from tests.bench.report import markdown

Line = dict[str, Any]
Row = dict[str, Any]

_UNTIL = {
    "to_last_znode_s": "last znode",
    "to_last_rpc_s": "last RPC",
    "from_process_start_s": "last RPC, from the start of the process",
}
_WORK = {
    "znodes": "znodes",
    "znodes_per_s": "znodes/s",
    "requests": "requests",
    "rpc_mb": "RPC MB",
}
_KINDS = ("front", "job", "jvm", "workers", "zookeeper", "stubs", "proxy", "benchmark")
_MANY = 100


class Cases:
    """The lines of one number of partitions, by case and controller."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.ran: dict[str, dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
        self._floors: dict[str, list[float]] = defaultdict(list)
        self._differ: dict[str, int] = defaultdict(int)
        self.controllers = list(dict.fromkeys(one["controller"] for one in lines))
        self.base = HELMSTREAM if HELMSTREAM in self.controllers else self.controllers[0]
        self._figures = {name for line in lines for name in line}
        for line in lines:
            case, _, what = line["bench"].rpartition("_")
            if what == "floor":
                self._floors[case].append(line["floors"])
            elif what == "differences":
                self._differ[case] += sum(
                    count for name, count in line.items() if name.endswith("_differ")
                )
            elif "to_last_rpc_s" in line:
                self.ran[line["bench"]][line["controller"]].append(line)

    def summaries(self) -> list[Line]:
        """Return a line for each case and controller: least, median, most of each figure."""
        about = ("partitions", "brokers", "delay_ms", "ensemble")
        return [
            {
                "bench": f"{case}_summary",
                "controller": name,
                "runs": len(runs),
                **{key: runs[0][key] for key in about},
                **{
                    figure: [min(values), round(median(values), 3), max(values)]
                    for figure in runs[0]
                    if figure not in (*about, "bench", "controller", "run")
                    and (values := _values(runs, figure))
                },
            }
            for case, by_controller in self.ran.items()
            for name, runs in by_controller.items()
        ]

    def seconds(self) -> list[Row]:
        """Return how long each case took, and the ratios to the first column."""
        rows = []
        for case, runs in self.ran.items():
            for figure, until in _UNTIL.items():
                row: Row = {"case": case, "until": until}
                for name in self.controllers:
                    row[name] = _spread(_values(runs[name], figure))
                    if name != self.base:
                        row[f"{name} / {self.base}"] = self._ratio(runs, name, figure)
                if figure == "to_last_rpc_s":
                    row["floors"] = _spread(self._floors[case])
                    row["differ"] = self._differ.get(case, "")
                if any(row[name] for name in self.controllers):
                    rows.append(row)
        return rows

    def work(self) -> list[Row]:
        """Return what was written and sent."""
        return self._rows(
            lambda runs, name: {
                title: _spread(_values(runs[name], figure)) for figure, title in _WORK.items()
            }
        )

    def cpu(self) -> list[Row]:
        """Return CPU seconds; `all` is of the controller and ZooKeeper."""
        return self._rows(
            lambda runs, name: {
                "all": _spread(_values(runs[name], "all_cpu_s")),
                "ratio": self._ratio(runs, name, "all_cpu_s"),
                **self._kinds(runs[name], "cpu_s"),
            }
        )

    def memory(self) -> list[Row]:
        """Return the most memory since the start of each process; `all` is of the controller."""
        return self._rows(
            lambda runs, name: {
                "all": _spread(_values(runs[name], "memory_mb")),
                **self._kinds(runs[name], "mb"),
            }
        )

    def _rows(self, cells: Callable[[dict[str, list[Line]], str], Row]) -> list[Row]:
        return [
            {"case": case, "controller": name, **cells(runs, name)}
            for case, runs in self.ran.items()
            for name in self.controllers
            if runs[name]
        ]

    def _kinds(self, runs: Sequence[Line], unit: str) -> Row:
        """Return a cell for each kind of process that any controller has."""
        return {
            kind: _middle(_values(runs, f"{kind}_{unit}"))
            for kind in _KINDS
            if f"{kind}_{unit}" in self._figures
        }

    def _ratio(self, runs: dict[str, list[Line]], name: str, figure: str) -> str:
        theirs, ours = _values(runs[name], figure), _values(runs[self.base], figure)
        return _text(median(theirs) / median(ours)) if theirs and ours and median(ours) else ""


def tables(lines: Sequence[Line]) -> list[tuple[str, list[Row]]]:
    """Return (title, rows) of each table, for each number of partitions."""
    found = []
    for partitions in dict.fromkeys(line["partitions"] for line in lines):
        cases = Cases([line for line in lines if line["partitions"] == partitions])
        found += [
            (f"{partitions:,} partitions: {title}", rows)
            for title, rows in (
                ("seconds", cases.seconds()),
                ("written and sent", cases.work()),
                ("CPU seconds", cases.cpu()),
                ("peak memory, MB", cases.memory()),
            )
        ]
    return found


def _values(runs: Sequence[Line], figure: str) -> list[float]:
    return [one[figure] for one in runs if one.get(figure) is not None]


def _spread(values: Sequence[float]) -> str:
    middle = _middle(values)
    if len(values) < 2:
        return middle
    return f"{middle} ({_text(min(values))}, {_text(max(values))})"


def _middle(values: Sequence[float]) -> str:
    return _text(median(values)) if values else ""


def _text(value: float) -> str:
    """Return a figure with as many decimals as say something."""
    if value >= _MANY or isinstance(value, int):
        return f"{value:,.0f}"
    return f"{value:.2f}" if value < _MANY / 10 else f"{value:.1f}"


def main() -> None:
    lines = [orjson.loads(line) for line in Path(sys.argv[1]).read_bytes().splitlines()]
    ran = [line for line in lines if not line["bench"].endswith("_summary")]
    sys.stdout.write("\n".join(markdown(*table) for table in tables(ran)))


if __name__ == "__main__":
    main()
