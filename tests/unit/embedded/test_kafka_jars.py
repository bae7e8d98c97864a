"""Where jars are kept, and that only complete folders are put in place."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from streaming.embedded import ivy
from streaming.embedded.ivy import Artifact, ArtifactsUnavailable, cache_folder, fetch_jars
from streaming.embedded.java import Java
from streaming.embedded.kafka_jars import kafka_jars


def test_cache_folder():
    assert cache_folder({"HELMSTREAM_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert cache_folder({"XDG_CACHE_HOME": "/b"}) == Path("/b/helmstream")
    assert cache_folder({}) == Path.home() / ".cache" / "helmstream"


def fake_ivy(folder: Path, script: str) -> Java:
    """A java that behaves like Ivy: its last argument is the retrieve pattern."""
    executable = folder / "java"
    executable.write_text(
        "#!/bin/bash\n"
        'target="${@: -1}"; target="$(dirname "$target")"; mkdir -p "$target"\n' + script
    )
    executable.chmod(0o755)
    return Java(executable, "17")


def test_fetched_once_with_progress(tmp_path):
    java = fake_ivy(
        tmp_path,
        'echo "	found org.apache.kafka#kafka_2.13;9.9 in public"\n'
        'echo "	[SUCCESSFUL ] org.apache.kafka#kafka_2.13;9.9!kafka_2.13.jar (7ms)"\n'
        'touch "$target/kafka_2.13-9.9.jar" "$target/slf4j-reload4j-1.7.36.jar"\n'
        'echo run >> "$(dirname "$0")/runs"\n',
    )
    seen = []
    for _ in range(2):
        jars = kafka_jars(
            "9.9", cache=tmp_path / "cache", java=java, progress=lambda *step: seen.append(step)
        )
        names = sorted(jar.name for jar in jars.iterdir())
        assert names == ["kafka_2.13-9.9.jar", "slf4j-reload4j-1.7.36.jar"]
    assert seen == [
        ("org.apache.kafka#kafka_2.13;9.9", 0, 1),
        ("org.apache.kafka#kafka_2.13;9.9", 1, 1),
    ]
    assert (tmp_path / "runs").read_text() == "run\n"


@pytest.mark.parametrize(
    ("version", "scala", "client"),
    [("2.0.1", "2.12", True), ("2.3.1", "2.12", True), ("2.4.1", "2.13", False)],
)
def test_brokers_that_bring_an_old_client_of_zookeeper_get_one_that_connects(
    tmp_path, version, scala, client
):
    java = fake_ivy(
        tmp_path,
        'cp "$(dirname "$target")/ivy.xml" "$(dirname "$0")/asked.xml"\n'
        f'touch "$target/kafka_{scala}-{version}.jar" "$target/slf4j-reload4j-1.7.36.jar"\n'
        'touch "$target/zookeeper-3.5.9.jar"\n',
    )
    kafka_jars(version, cache=tmp_path / "cache", java=java)
    asked = (tmp_path / "asked.xml").read_text()
    assert f'name="kafka_{scala}" rev="{version}"' in asked
    assert ('name="zookeeper" rev="3.5.9"' in asked) is client


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ('touch "$target/kafka_2.13-9.9.jar"; echo UNRESOLVED; exit 1\n', "Ivy ended with code 1"),
        ('touch "$target/kafka-clients-9.9.jar"\n', "kafka_2.13-9.9.jar did not come"),
    ],
)
def test_an_incomplete_folder_is_not_put_in_place(tmp_path, script, reason):
    with pytest.raises(ArtifactsUnavailable, match=reason):
        kafka_jars("9.9", cache=tmp_path / "cache", java=fake_ivy(tmp_path, script))
    assert not (tmp_path / "cache" / "kafka-9.9").exists()
    assert [p.name for p in (tmp_path / "cache").iterdir()] == ["kafka-9.9.lock"]


def test_a_jar_that_is_not_the_one_that_is_meant_is_not_put_in_place(tmp_path):
    java = fake_ivy(tmp_path, 'printf "a jar" > "$target/one-1.jar"\n')
    other, meant = (hashlib.sha256(jar).hexdigest() for jar in (b"another", b"a jar"))
    with pytest.raises(ArtifactsUnavailable, match=f"one-1.jar with SHA-256 {other} did not come"):
        fetch_jars("one", [Artifact("o", "one", "1", sha256=other)], cache=tmp_path, java=java)
    assert not (tmp_path / "one").exists()
    one = Artifact("o", "one", "1", sha256=meant)
    assert (fetch_jars("one", [one], cache=tmp_path, java=java) / one.jar).is_file()


def test_a_download_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(ivy, "_RESOLVE_TIMEOUT_S", 2)
    hanging = f'exec {sys.executable} -c "import time; time.sleep(60)"'
    java = fake_ivy(tmp_path, f"echo waiting\n{hanging}\n")
    monkeypatch.setenv("PATH", str(tmp_path))  # no program but Java is needed
    with pytest.raises(ArtifactsUnavailable, match=r"not done after 2 s(.|\n)*waiting"):
        kafka_jars("9.9", cache=tmp_path / "cache", java=java)
    assert not (tmp_path / "cache" / "kafka-9.9").exists()
