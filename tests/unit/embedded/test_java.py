"""Java is found as Spark finds it, and what is wrong with it is said."""

from __future__ import annotations

import pytest

from streaming.embedded.java import JavaMissing, JavaTooOld, find_java


def fake_java(folder, answer: str, code: int = 0):
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{answer}\nEND\nexit {code}\n")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "17.0.15"),
        ('java version "21" 2023-09-19 LTS', "21"),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=y\nopenjdk version "24-ea" 2025-03-18', "24-ea"),
    ],
)
def test_a_good_one_from_java_home_or_from_path(tmp_path, answer, version):
    executable = fake_java(tmp_path, answer)
    assert find_java({"JAVA_HOME": str(tmp_path), "PATH": ""}).version == version
    path = {"PATH": f"{executable.parent}:/usr/bin:/bin"}
    assert find_java(path).executable == executable


@pytest.mark.parametrize(
    "answer", ['java version "1.8.0_402"', 'openjdk version "11.0.22" 2024-01-16']
)
def test_a_java_before_17_is_refused_with_its_version(tmp_path, answer):
    fake_java(tmp_path, answer)
    with pytest.raises(JavaTooOld, match=r"Java (1\.8\.0_402|11\.0\.22) at .* is too old: Java 17"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_where_java_was_looked_for_is_said_when_none_answers(tmp_path):
    with pytest.raises(JavaMissing, match="no bin/java in it"):
        find_java({"JAVA_HOME": str(tmp_path)})
    with pytest.raises(JavaMissing, match="and PATH, found nothing"):
        find_java({"PATH": str(tmp_path)})
    fake_java(tmp_path, "no version here", code=1)
    with pytest.raises(JavaMissing, match="unreadable version"):
        find_java({"JAVA_HOME": str(tmp_path)})
