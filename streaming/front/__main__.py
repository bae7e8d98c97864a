"""`python -m streaming.front` is `helmstream front`."""

from __future__ import annotations

import sys

from streaming.cli import main

main(["front", *sys.argv[1:]])
