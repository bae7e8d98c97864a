"""Numbers by which a broker is asked for what it has of a partition
(FetchRequest.DEBUGGING_CONSUMER_ID, ListOffsetsRequest).
"""

from __future__ import annotations

DEBUGGING_REPLICA = -2
"""Who asks as this replica is answered by followers too, up to the end of their logs."""
EARLIEST = -2
LATEST = -1
"""Timestamps of ListOffsets: where a log begins and ends."""
