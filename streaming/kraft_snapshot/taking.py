"""Takes what znodes say as records, and tells what cannot be taken."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

from streaming.metadata_log.records import Record
from streaming.migration.entities import each_read


def taken(
    data: Mapping[str, bytes],
    records: Callable[[str, bytes], Iterable[Record]],
    gaps: list[str],
) -> Iterator[Record]:
    """Yield the records of znodes that have data; one whose reading raises ValueError is left out,
    and told in gaps.

    records: of a path and what is there.
    """
    found, broken = each_read(data, lambda path, said: list(records(path, said)))
    yield from itertools.chain.from_iterable(found.values())
    gaps += [f"{path}: {error}" for path, error in broken.items()]
