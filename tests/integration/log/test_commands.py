"""The command line over logs in topics: made, copied, replayed, tapped, compared."""

from __future__ import annotations

import uuid

import orjson
import pytest

from checkpoints.replay import Digest
from streaming.cli import main
from streaming.log.api import NewRecord
from streaming.log.embedded import EmbeddedLogWriter
from streaming.log.kafka_writer import KafkaLogWriter
from tests.fixtures.folding import fold_log
from tests.logs.state_logs import long_log

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(scope="module")
def log():
    return long_log(11, plausible=True)


@pytest.fixture
def events(tmp_path, log):
    with EmbeddedLogWriter(tmp_path / "data" / "events") as writer:
        writer.append([NewRecord(e.kind, e.key, e.payload, e.time_ms) for e in log])
    return tmp_path / "data"


@pytest.fixture
def run(capsys):
    """Runs a command; returns its exit code and what it printed."""

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(one) for one in arguments])
        printed = capsys.readouterr()
        return left.value.code or 0, printed.out + printed.err

    return run


def wanted(log):
    digest = Digest()
    digest.update(fold_log(log, 1)[1])
    return digest.hexdigest()


def test_a_log_that_was_copied_to_a_topic_gives_the_same_digest(run, events, log, log_cluster):
    url = str(log_cluster.topic(f"events-{uuid.uuid4().hex}"))
    code, said = run("log", "copy", events, url)
    assert code == 2, said
    assert f"helmstream log create {url}" in said
    assert run("log", "create", url) == (0, f"{url} can hold a log\n")
    assert run("log", "copy", events, url) == (0, f"{len(log)} records copied to {url}\n")
    assert run("log", "copy", events, url) == (0, f"0 records copied to {url}\n")
    out = events.parent / "out"
    assert run("replay", url, "--local", "--until", "30", "--out", out)[0] == 0
    code, said = run("replay", url, "--local", "--batch", "7", "--out", out)
    assert code == 0
    assert f"digest {wanted(log)}\n" in said

    exported = events.parent / "exported.jsonl", events.parent / "original.jsonl"
    assert run("log", "export", url, exported[0])[0] == 0
    assert run("log", "export", events, exported[1])[0] == 0
    assert exported[0].read_bytes() == exported[1].read_bytes()


def test_decisions_are_tapped_once_and_compared(run, events, log, log_topic, tmp_path):
    out = tmp_path / "out"
    assert run("replay", events, "--local", "--out", out)[0] == 0
    run("log", "copy", out, log_topic, "--decisions")
    decisions = fold_log(log, 1)[1]
    with KafkaLogWriter(log_topic) as writer:
        last = decisions[-1]
        key = f"{last.offset}:{last.ordinal}"
        writer.append([NewRecord(last.kind, key, last.body, 1)])
        assert writer.end_offset() == len(decisions) + 1
    _, lines = run("tap", log_topic, "--no-follow")
    keys = [orjson.loads(line)["key"] for line in lines.splitlines()]
    assert keys == [f"{one.offset}:{one.ordinal}" for one in decisions]
    assert run("diff", out, log_topic) == (0, "no difference\n")


def test_a_copy_keeps_offsets_or_is_refused(run, tmp_path, log_topic):
    with EmbeddedLogWriter(tmp_path / "late", first_offset=7) as writer:
        writer.append([NewRecord("k", "", b"{}")])
    code, said = run("log", "copy", tmp_path / "late", log_topic)
    assert (code, "offsets would not be the same" in said) == (1, True)


def test_what_a_url_must_be(run, tmp_path):
    code, said = run("replay", "kafka://nowhere/topic", "--local", "--out", tmp_path / "out")
    assert (code, "allowed is kafka://host:port" in said) == (2, True)
    code, said = run("log", "create", tmp_path)
    assert (code, "is not a topic" in said) == (2, True)
