"""With the real query: a load while the job runs is folded ahead of it, from states it wrote."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.job import start_query
from streaming.starting.beginning import Beginning
from tests.fixtures.folding import fold_log
from tests.fixtures.starting_job import SLOTS, Job
from tests.fixtures.story import Story
from tests.fixtures.waiting import wait_for

pytestmark = pytest.mark.spark


def many_topics(story: Story, epoch: int) -> int:
    """An election and its load; return the election's offset."""
    elected = story.elected(epoch, epoch)
    story.register({1: 1_001, 2: 1_002, 3: 1_003})
    for number in range(60):
        story.observe(f"topic-{number}", [[1, 2], [2, 3], [3, 1]])
    story.write("resync_completed", topics=60)
    return elected


def test_a_second_load_is_folded_ahead_and_again_by_the_query(spark, tmp_path, caplog):
    story = Story()
    many_topics(story, 1)
    story.unregister(2)
    elected = many_topics(story, 2)
    story.unregister(1)
    job = Job(tmp_path, story.events, {"shuffle.partitions": 1})
    job.write(elected)
    every = job.begin_all(Beginning(0, True, 0, {}))
    every.start()
    query: Any = start_query(spark, job.settings, job.folders, every.process_batch)
    try:
        wait_for("the first load", lambda: job.sinks.end() == elected)
        query.processAllAvailable()
        job.write(elected + 1)
        wait_for("a batch of the query", lambda: job.sinks.end() == elected + 1)
        job.write(len(job.log))
        wait_for("the second load", lambda: job.sinks.end() == len(job.log))
        query.processAllAvailable()
        every.check()
    finally:
        query.stop()
        job.close()
    own = [folded for batch_id, folded in job.sinks.carried_out if batch_id is None]
    assert own[-1].end_offset == len(job.log)
    assert job.sinks.passed_over[-1] == len(job.log)
    decided = [one for _, folded in job.sinks.carried_out for one in folded.decisions]
    assert decided == fold_log(job.log, SLOTS)[1]
    assert "decided otherwise" not in caplog.text
