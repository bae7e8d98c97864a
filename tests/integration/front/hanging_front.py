"""The front on a log disk that hangs while its data folder has a file `hang`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from streaming.cli import main
from streaming.log.embedded_segment import SegmentWriter

if __name__ == "__main__":
    hang = Path(sys.argv[sys.argv.index("--data-dir") + 1]) / "hang"
    sync = SegmentWriter.sync

    def hang_and_sync(segment: SegmentWriter) -> None:
        while hang.exists():
            time.sleep(0.01)
        sync(segment)

    SegmentWriter.sync = hang_and_sync
    main(["front", *sys.argv[1:]])
