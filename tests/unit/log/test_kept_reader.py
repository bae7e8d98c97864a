"""Who looks into a log now and then: a topic is opened once, a folder each time."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from streaming.log import kept_reader
from streaming.log.api import LogUnavailable
from streaming.log.kept_reader import KeptReader
from streaming.log.location import topic_of

TOPIC = topic_of("kafka://127.0.0.1:1/events")


@pytest.fixture
def readers(monkeypatch):
    """The readers that were opened, in order."""
    opened = []

    def open_log(_):
        opened.append(Mock())
        return opened[-1]

    monkeypatch.setattr(kept_reader, "open_log", open_log)
    return opened


def test_a_topic_s_reader_is_kept_until_it_is_closed(readers):
    log = KeptReader(TOPIC)
    assert not readers, "nothing is opened before it is needed"
    for _ in range(3):
        with log.opened() as reader:
            assert [reader] == readers
    (opened,) = readers
    assert not opened.close.called
    log.close()
    log.close()
    opened.close.assert_called_once_with()
    with log.opened() as another:
        assert another is not reader


def test_a_reader_at_which_something_failed_is_closed(readers):
    log = KeptReader(TOPIC)
    with pytest.raises(LogUnavailable), log.opened():
        raise LogUnavailable("no answer")
    with log.opened():
        pass
    assert [one.close.called for one in readers] == [True, False]


def test_a_folder_is_opened_each_time(readers):
    log = KeptReader(Path("events"))
    for _ in range(2):
        with log.opened():
            assert not readers[-1].close.called
    assert [one.close.called for one in readers] == [True, True]
