"""A job that waits for its turn while the other one has all that Spark could work with."""

from __future__ import annotations

import threading
from unittest.mock import Mock

import orjson
import pytest
from pyspark import SparkConf

from checkpoints.layout import check_layout
from checkpoints.state_files import _MADE_WITH
from state.routing import Layout
from streaming.errors import ConfigurationError
from streaming.log import kafka_reader
from streaming.paths import DataDir
from streaming.settings_loader import load_settings
from streaming.spark.warm_workers import WarmWorkers
from streaming.starting import standby


@pytest.fixture
def blocked():
    """A session that has no cores until the test is over."""
    over = threading.Event()
    spark = Mock()
    spark.range.side_effect = spark.read.format.side_effect = lambda *_: over.wait() and Mock()
    yield spark
    over.set()


@pytest.fixture
def folders(tmp_path):
    """A data folder with a committed batch, of no shuffle partitions."""
    folders = DataDir(tmp_path)
    conf = {**_MADE_WITH, "spark.sql.shuffle.partitions": "0"}
    plan = f'v1\n{orjson.dumps({"conf": conf}).decode()}\n{{"offset":0}}'
    for name, text in (("offsets", plan), ("commits", "v1\n{}")):
        (folders.checkpoint / name).mkdir(parents=True)
        (folders.checkpoint / name / "0").write_text(text)
    return folders


def test_the_lock_is_taken_while_spark_has_no_cores(blocked, folders):
    settings = load_settings(overrides=[f"data.dir={folders.root}"], environment={})
    lock = Mock(try_acquire=Mock(side_effect=[False, True]))
    follower = standby.CheckpointFollower(blocked, settings, folders)
    workers = WarmWorkers(blocked, 1, clock=iter(range(0, 1_000_000, 1_000)).__next__)
    turns = []

    def wait() -> None:
        turns.append(standby._wait_for_turn(lock, follower, workers, threading.Event()))

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(30)
    assert turns == [True]
    blocked.range.assert_called_once()
    assert not blocked.read.format.called


def test_the_machines_are_handed_over_and_not_kept(blocked, folders, monkeypatch):
    known = {1: b"machine"}
    monkeypatch.setattr(standby, "stored_states", lambda *_: known)
    monkeypatch.setattr(standby.CheckpointFollower, "_leads_on", lambda *_: True)
    settings = load_settings(overrides=[f"data.dir={folders.root}"], environment={})
    follower = standby.CheckpointFollower(blocked, settings, folders)
    assert follower.states() is known
    assert follower._states is None


def test_a_topic_is_opened_once_for_all_looks(blocked, folders, monkeypatch):
    def at_start(partitions, _):
        return dict.fromkeys(partitions, 0)

    consumer = Mock(beginning_offsets=at_start, end_offsets=at_start)
    consumer.partitions_for_topic.return_value = {0}
    opening = Mock(return_value=consumer)
    monkeypatch.setattr(kafka_reader, "open_consumer", opening)
    monkeypatch.setattr(standby, "stored_states", lambda *_: {})
    settings = load_settings(overrides=[f"data.dir={folders.root}"], environment={})
    on_topic = DataDir(folders.root, "kafka://127.0.0.1:1/events")
    follower = standby.CheckpointFollower(blocked, settings, on_topic)
    for _ in range(3):
        follower.catch_up()
    opening.assert_called_once()
    assert not consumer.close.called
    follower.states()
    consumer.close.assert_called_once_with()


@pytest.mark.parametrize(
    ("conf", "refused"),
    [
        ({"spark.master": "spark://m:7077"}, True),
        ({"spark.master": "spark://m:7077", "spark.cores.max": "2"}, False),
        ({"spark.master": "local[2]"}, False),
    ],
)
def test_a_standalone_cluster_has_to_leave_it_some_cores(monkeypatch, tmp_path, conf, refused):
    spark = Mock()
    spark.sparkContext.getConf.return_value = SparkConf(loadDefaults=False).setAll(conf.items())
    monkeypatch.setattr(standby, "open_spark", lambda *_: spark)
    monkeypatch.setattr(standby, "local_fs_jar", lambda: None)
    monkeypatch.setattr(standby, "warm_up", Mock(side_effect=RuntimeError("warmed up")))
    lock = Mock(try_acquire=Mock(return_value=False))
    with pytest.raises(
        ConfigurationError if refused else RuntimeError, match=r"spark\.cores|warmed"
    ):
        standby.stand_by(Mock(), DataDir(tmp_path), lock, threading.Event())


def test_a_checkpoint_made_with_other_slots_ends_a_standby_before_it_is_needed(
    blocked, folders, monkeypatch
):
    settings = load_settings(overrides=[f"data.dir={folders.root}"], environment={})
    other = Layout(settings.slots + 1, settings.group_slots)
    follower = standby.CheckpointFollower(blocked, settings, folders)
    check_layout(folders.checkpoint, other, settings.shuffle_partitions)
    with pytest.raises(ConfigurationError, match="was made with slots"):
        standby._follow(follower)
    opened = Mock()
    monkeypatch.setattr(standby, "open_spark", opened)
    lock = Mock(try_acquire=Mock(return_value=False))
    with pytest.raises(ConfigurationError, match="was made with slots"):
        standby.stand_by(settings, folders, lock, threading.Event())
    assert not opened.called
