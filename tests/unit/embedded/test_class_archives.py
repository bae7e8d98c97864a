"""Archives of classes: who leaves one, who maps it, and that nothing is archived unasked."""

from __future__ import annotations

from pathlib import Path

from streaming.embedded.class_archives import ARCHIVES_VARIABLE, ClassArchive
from streaming.embedded.java import Java

JAVA = Java(Path("/java"), "17.0.1")


def of(folder: Path, class_path: str = "/jars/*", java: Java = JAVA) -> ClassArchive:
    return ClassArchive.of(java, class_path, "kafka.Kafka", {ARCHIVES_VARIABLE: str(folder)})


def left_by(run: ClassArchive) -> Path:
    """What its JVM leaves when it ends in order."""
    (leaves,) = (one for one in run.options if one.startswith("-XX:ArchiveClassesAtExit="))
    path = Path(leaves.partition("=")[2])
    path.write_text("classes")
    return path


def test_nothing_is_archived_unasked() -> None:
    run = ClassArchive.of(JAVA, "/jars/*", "kafka.Kafka", {})
    run.keep()
    assert run == ClassArchive()
    assert not run.options


def test_one_run_leaves_an_archive_and_the_next_one_maps_it(tmp_path: Path) -> None:
    folder = tmp_path / "archives"
    first = of(folder)
    left = left_by(first)
    assert not first.mapping
    assert of(folder).left not in (None, left), "two runs write to one file"
    first.keep()
    (archive,) = folder.iterdir()
    assert of(folder).options[0] == f"-XX:SharedArchiveFile={archive}"
    assert of(folder).mapping == of(folder).options


def test_a_run_that_was_killed_leaves_nothing(tmp_path: Path) -> None:
    of(tmp_path).keep()
    assert of(tmp_path).left is not None


def test_an_archive_is_for_one_java_and_one_class_path(tmp_path: Path) -> None:
    first = of(tmp_path)
    left_by(first)
    first.keep()
    assert of(tmp_path).left is None
    assert of(tmp_path, class_path="/other/*").left is not None
    assert of(tmp_path, java=Java(Path("/java"), "17.0.2")).left is not None
