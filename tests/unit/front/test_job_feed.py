"""Decisions about groups are taken in order, in parts between which others are served."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from state.decisions import DecisionKind
from streaming.front import job_feed
from streaming.front.job_feed import JobFeed
from streaming.front.job_progress import JobProgress
from streaming.link.messages import Message, pack_parts

Decisions = Sequence[tuple[int, bytes]]


def feed(taken: list[Decisions], progress: JobProgress) -> JobFeed:
    """A feed that notes which decisions about groups are taken together."""

    def nothing(*_: object) -> None:
        """Take what is not looked at."""

    return JobFeed(
        progress,
        cast(Any, SimpleNamespace(arm=nothing, replace=nothing)),
        cast(Any, SimpleNamespace(answer=nothing)),
        Counter(),
        lambda: 0,
        pauses_on=lambda was_paused: was_paused,
        listener=cast(
            Any,
            SimpleNamespace(
                decided=nothing,
                groups_decided=taken.append,
                snapshot=nothing,
                batch_completed=nothing,
            ),
        ),
    )


def message(bodies: Sequence[bytes]) -> Message:
    kind = str(DecisionKind.CHANGE_GROUP)
    described = [[offset, kind, len(body)] for offset, body in enumerate(bodies)]
    return Message({"type": "decisions", "decisions": described}, pack_parts(bodies))


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ([], []),
        ([10], [1]),
        ([40] * 7, [3, 3, 1]),
        ([500, 10, 10], [1, 2]),
        ([50, 50, 200], [2, 1]),
    ],
)
def test_decisions_about_groups_are_taken_in_parts(
    sizes: list[int], parts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_feed, "_PART_BYTES", 100)
    bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
    taken: list[Decisions] = []
    turns = [len(taken) for _ in feed(taken, JobProgress()).job_said(message(bodies))]
    assert [one for part in taken for one in part] == list(enumerate(bodies))
    assert [len(part) for part in taken] == parts
    assert turns == list(range(1, len(parts) + 1)), "others are served after each"


def test_a_pause_is_carried_out_with_the_batch_that_it_is_in() -> None:
    """A job that comes may be behind the one before it, and still paused by an earlier order."""
    progress = JobProgress()
    job = feed([], progress)

    def say(head: dict[str, Any], body: bytes = b"") -> None:
        for _ in job.job_said(Message(head, body)):
            pass

    def decide(*decided: tuple[int, bool]) -> None:
        bodies = [orjson.dumps({"paused": paused, "reason": ""}) for _, paused in decided]
        kind = str(DecisionKind.SET_PAUSE)
        rows = [[at, kind, len(body)] for (at, _), body in zip(decided, bodies, strict=True)]
        say({"type": "decisions", "decisions": rows}, pack_parts(bodies))

    def found() -> list[int]:
        return [offset for offset in (3, 4, 5, 6, 7) if progress.is_paused_after(offset)]

    image = {"type": "image", "paused": True, "end_offset": 5}
    batch = {"type": "batch", "batch_id": 1, "end_offset": 7}
    say(image)
    assert found() == [3, 4]
    decide((5, False), (6, True))
    assert found() == [3, 4]
    say(batch)
    assert found() == [3, 4, 5, 6]
    say(image)
    assert found() == [3, 4]
    decide((5, False))
    say(batch)
    assert found() == []
