"""`python -m tests.conformance FILE...`: runs scenario files; exit code 1 when anything failed."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conformance.load import load
from tests.conformance.report import lines
from tests.conformance.run import run
from tests.conformance.verdict import Outcome


def main(arguments: list[str]) -> int:
    """Run the files named by the arguments and report."""
    if not arguments:
        sys.stderr.write("usage: python -m tests.conformance FILE...\n")
        return 2
    verdicts = [run(scenario) for name in arguments for scenario in load(Path(name))]
    for line in lines(verdicts):
        sys.stdout.write(line + "\n")
    return int(any(verdict.outcome is Outcome.FAILED for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
