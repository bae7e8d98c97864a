"""Takes what znodes say as records, and tells what cannot be taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from streaming.metadata_log.records import Record


def taken(
    data: Mapping[str, bytes],
    records: Callable[[str, bytes], Iterable[Record]],
    gaps: list[str],
) -> Iterator[Record]:
    """Yield the records of znodes that have data; one whose reading raises ValueError is left out,
    and told in gaps.

    records: of a path and what is there.
    """
    for path, said in data.items():
        try:
            if said:  # a znode that has only just been made has none
                yield from list(records(path, said))
        except ValueError as error:
            gaps.append(f"{path}: {error}")
