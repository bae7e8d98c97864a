"""Processes whose members consume as a group: what they own, consumed and committed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from streaming.embedded.java import find_java
from tests.fixtures.kafka_tools import NEW, archive_of, class_path

SESSION_MS = 6_000
_HEARTBEAT_MS = 1_000
_METADATA_AGE_MS = 1_000
_END_S = 120.0

Partition = tuple[str, int]
"""Topic and number."""


class Members:
    """One process, which hosts one or more members and tells what they do."""

    def __init__(self, command: Sequence[str]) -> None:
        self.consumed: Counter[tuple[str, int, int]] = Counter()
        self.acked: dict[Partition, int] = {}
        self.failures: list[str] = []
        self._owned: dict[int, set[Partition]] = {}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def owned(self) -> dict[int, set[Partition]]:
        """The partitions of each member that has some, as far as it was told; a process that has
        died has none, and must not have died by itself.
        """
        assert self._process.returncode is not None or self._process.poll() is None, (
            f"members ended by themselves with {self._process.returncode}"
        )
        return {member: set(has) for member, has in [*self._owned.items()] if has}

    def stop(self) -> None:
        """Let it close its clients, and wait for its end."""
        self._process.terminate()
        try:
            self._process.wait(_END_S)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait()
        self._reader.join(_END_S)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._owned.clear()

    def pause(self) -> None:
        """Let it do nothing until `resume`."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"{"):
                self._take(orjson.loads(line))

    def _take(self, said: dict[str, Any]) -> None:
        rows = said.get("partitions", [])
        named = {(one["topic"], one["partition"]) for one in rows}
        owned = self._owned.setdefault(said.get("member", 0), set())
        match said["name"]:
            case "partitions_assigned":
                owned |= named
            case "partitions_revoked":
                owned -= named
            case "records_consumed":
                for one in rows:
                    offsets = range(one["minOffset"], one["maxOffset"] + 1)
                    self.consumed.update((one["topic"], one["partition"], at) for at in offsets)
            case "offsets_committed":
                self._take_commit(said)

    def _take_commit(self, said: dict[str, Any]) -> None:
        if not said["success"]:
            self.failures.append(str(said.get("error")))
            return
        for one in said["offsets"]:
            at = one["topic"], one["partition"]
            self.acked[at] = max(one["offset"], self.acked.get(at, 0))


def python_members(
    client: str,
    topic: str,
    count: int = 1,
    /,
    instance: str | None = None,
    session_ms: int = SESSION_MS,
    **config: Any,
) -> Members:
    """Start members of librdkafka, or of kafka-python; config is the client's."""
    if instance is not None:
        config["group.instance.id"] = instance
    common = {
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": _HEARTBEAT_MS,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if client == "librdkafka":
        chosen = common | {"topic.metadata.refresh.interval.ms": _METADATA_AGE_MS} | config
    else:
        chosen = common | {"metadata.max.age.ms": _METADATA_AGE_MS} | config
        chosen = {name.replace(".", "_"): value for name, value in chosen.items()}
    written = orjson.dumps(chosen).decode()
    return Members(
        [sys.executable, "-m", "tests.e2e.group_members", client, topic, str(count), written]
    )


def java_member(
    brokers: str,
    group: str,
    topic: str,
    folder: Path,
    *,
    instance: str | None = None,
    assignor: str = "RangeAssignor",
    session_ms: int = SESSION_MS,
    version: str = NEW,
) -> Members:
    """Start Kafka's own consumer of a version, in its VerifiableConsumer."""
    named = {
        "--bootstrap-server": brokers,
        "--topic": topic,
        "--group-id": group,
        "--session-timeout": str(session_ms),
        "--reset-policy": "earliest",
        "--assignment-strategy": f"org.apache.kafka.clients.consumer.{assignor}",
    }
    if instance is not None:
        named["--group-instance-id"] = instance
    words = [word for pair in named.items() for word in pair]
    main = "org.apache.kafka.tools.VerifiableConsumer"
    return Members(java_command(main, folder, words, version))


def java_command(main: str, folder: Path, words: Iterable[str], version: str = NEW) -> list[str]:
    """Return the command line of one of Kafka's programs, which logs nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    logging = folder / "silent.properties"
    logging.write_text("log4j.rootLogger=OFF\n")
    small = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    java = [str(find_java().executable), *archive_of(version).mapping, *small]
    logged = f"-Dlog4j.configuration={logging.as_uri()}"
    return [*java, logged, "-cp", class_path(version), main, *words]
