"""The job's jar: taken from the cache, and fetched only where somebody says so."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import pytest

from streaming.embedded.ivy import CACHE_VARIABLE, ArtifactsUnavailable
from streaming.spark import local_fs

NAME = "hadoop-bare-naked-local-fs-0.1.0"


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what was fetched into an empty cache; nothing can be had."""
    asked: list[str] = []

    def fetch(name: str, _: object) -> None:
        asked.append(name)
        raise ArtifactsUnavailable(name, "no network", [])

    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(local_fs, "fetch_jars", fetch)
    return asked


def test_a_start_takes_what_is_there_and_fetches_nothing(
    tmp_path: Path, fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert local_fs.local_fs_jar() is None
    (tmp_path / NAME).mkdir()
    jar = tmp_path / NAME / f"{NAME}.jar"
    jar.write_bytes(b"a jar")
    meant = dataclasses.replace(local_fs._ARTIFACT, sha256=hashlib.sha256(b"a jar").hexdigest())
    monkeypatch.setattr(local_fs, "_ARTIFACT", meant)
    assert local_fs.local_fs_jar() == jar
    assert fetched == []


def test_another_jar_of_that_name_is_not_taken(
    tmp_path: Path, fetched: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / f"{NAME}.jar").write_bytes(b"another jar")
    assert local_fs.local_fs_jar() is None
    assert f"{NAME}.jar with SHA-256 e0cc30fb" in caplog.text
    assert fetched == []


def test_what_cannot_be_fetched_is_said_and_done_without(
    fetched: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    local_fs.fetch_local_fs_jar()
    assert fetched == [NAME]
    assert "checkpoint files will take longer" in caplog.text
    assert local_fs.local_fs_jar() is None
