"""Fetches jars once, by the Ivy that pyspark ships, into a cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streaming.embedded.java import Java, find_java
from streaming.embedded.spark_jars import spark_jars
from streaming.errors import HelmstreamError

CACHE_VARIABLE = "HELMSTREAM_CACHE"
IVY_SETTINGS_VARIABLE = "HELMSTREAM_IVY_SETTINGS"

_RESOLVE_TIMEOUT_S = 900
_TAIL_LINES = 15
_FOUND = re.compile(r"\bfound (\S+#\S+;\S+)")
_FETCHED = re.compile(r"\[SUCCESSFUL \] (\S+?)!")

# The "default" configuration of a Maven module is its run-time dependencies and its own jar;
# "master" is its own jar alone.
_IVY_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="helmstream" module="fetched"/>
  <configurations><conf name="runtime"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
_IVY_DEPENDENCY = (
    '    <dependency org="{0.organisation}" name="{0.name}" rev="{0.revision}" '
    'conf="runtime->{0.configuration}">{1}</dependency>'
)
_IVY_CLASSIFIED = '<artifact name="{0.name}" type="jar" m:classifier="{0.classifier}"/>'

JarsProgress = Callable[[str, int, int], None]
"""Called with (module just found or fetched, modules fetched so far, modules found so far)."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A module in a Maven repository.

    configuration "default" brings its dependencies, "master" does not; sha256: of its own jar,
    None to take what the repository gives, which Ivy compares with the repository's own checksums;
    classifier: of the jar that is meant, "" for the module's main one.
    """

    organisation: str
    name: str
    revision: str
    configuration: str = "default"
    sha256: str | None = None
    classifier: str = ""

    @property
    def jar(self) -> str:
        """File name of the module's own jar."""
        return "-".join(filter(None, [self.name, self.revision, self.classifier])) + ".jar"

    @property
    def dependency(self) -> str:
        """What Ivy is told of it."""
        meant = _IVY_CLASSIFIED.format(self) if self.classifier else ""
        return _IVY_DEPENDENCY.format(self, meant)

    def is_in(self, folder: Path) -> bool:
        """Return whether a folder has the module's own jar, and it is the one that is meant."""
        jar = folder / self.jar
        if not jar.is_file():
            return False
        return self.sha256 is None or hashlib.sha256(jar.read_bytes()).hexdigest() == self.sha256


class ArtifactsUnavailable(HelmstreamError):
    """Ivy could not fetch something; carries the end of its output."""

    exit_code = 4

    def __init__(self, what: str, reason: str, output: list[str]) -> None:
        tail = "\n".join(output[-_TAIL_LINES:])
        super().__init__(
            f"the jars of {what} could not be fetched: {reason}; check the network, or "
            f"name a repository other than Maven Central by an Ivy settings file in "
            f"{IVY_SETTINGS_VARIABLE}; what Ivy said last:\n{tail}"
        )
        self.reason = reason


def cache_folder(env: Mapping[str, str] | None = None) -> Path:
    """Return HELMSTREAM_CACHE, or helmstream/ in XDG_CACHE_HOME, or ~/.cache/helmstream."""
    environment = os.environ if env is None else env
    if environment.get(CACHE_VARIABLE):
        return Path(environment[CACHE_VARIABLE])
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "helmstream"


def fetch_jars(
    name: str,
    artifacts: Sequence[Artifact],
    *,
    cache: Path | None = None,
    java: Java | None = None,
    progress: JarsProgress | None = None,
) -> Path:
    """Return the cache's folder `name` with the jars of all artifacts, fetching them if need be.

    A folder is put in place by one rename when it is complete, so one that exists can be used; of
    several processes that need it at once, one fetches and the others wait. Raises
    ArtifactsUnavailable, JavaMissing, JavaTooOld, SparkJarsMissing.
    """
    root = cache_folder() if cache is None else cache
    target = root / name
    if target.is_dir():
        return target
    root.mkdir(parents=True, exist_ok=True)
    with only_one(root / f"{name}.lock"):
        if not target.is_dir():
            _fetch(artifacts, target, java or find_java(), progress)
    return target


@contextmanager
def only_one(lock_path: Path) -> Iterator[None]:
    """Wait until no other process is in here with the same file."""
    with lock_path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(
    artifacts: Sequence[Artifact], target: Path, java: Java, progress: JarsProgress | None
) -> None:
    # Ivy's own cache is kept until the folder is complete: an interrupted fetch goes on from there.
    root = target.parent
    ivy_cache = root / f"ivy-{target.name}"
    with tempfile.TemporaryDirectory(dir=root, prefix=f".{target.name}-") as scratch:
        module = Path(scratch) / "ivy.xml"
        dependencies = "\n".join(one.dependency for one in artifacts)
        module.write_text(_IVY_MODULE.format(dependencies=dependencies), encoding="utf-8")
        jars = Path(scratch) / "jars"
        output = _run_ivy(target.name, _ivy_command(java, module, ivy_cache, jars), progress)
        for artifact in artifacts:
            if not artifact.is_in(jars):
                wanted = f" with SHA-256 {artifact.sha256}" if artifact.sha256 else ""
                reason = f"{artifact.jar}{wanted} did not come"
                raise ArtifactsUnavailable(target.name, reason, output)
        jars.rename(target)
    shutil.rmtree(ivy_cache, ignore_errors=True)


def _ivy_command(java: Java, module: Path, ivy_cache: Path, jars: Path) -> list[str]:
    command = [str(java.executable), "-jar", str(spark_jars(["ivy-*.jar"])[-1])]
    settings = os.environ.get(IVY_SETTINGS_VARIABLE)
    if settings:
        command += ["-settings", settings]
    command += ["-cache", str(ivy_cache), "-ivy", str(module), "-confs", "runtime"]
    return [*command, "-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"]


def _run_ivy(what: str, command: list[str], progress: JarsProgress | None) -> list[str]:
    output: list[str] = []
    found: set[str] = set()
    fetched: set[str] = set()
    overdue = threading.Event()
    with _ending_after(_RESOLVE_TIMEOUT_S, command, overdue) as ivy:
        assert ivy.stdout is not None
        for line in ivy.stdout:
            output.append(line.rstrip())
            for pattern, seen in ((_FOUND, found), (_FETCHED, fetched)):
                match = pattern.search(line)
                if match:
                    seen.add(match[1])
                    if progress is not None:
                        progress(match[1], len(fetched), len(found))
    if overdue.is_set():
        raise ArtifactsUnavailable(what, f"not done after {_RESOLVE_TIMEOUT_S} s", output)
    if ivy.returncode != 0:
        raise ArtifactsUnavailable(what, f"Ivy ended with code {ivy.returncode}", output)
    return output


@contextmanager
def _ending_after(
    timeout_s: float, command: list[str], overdue: threading.Event
) -> Iterator[subprocess.Popen[str]]:
    """Run a program; a download that hangs is killed after timeout_s, and `overdue` set."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:

        def end() -> None:
            overdue.set()
            process.kill()

        timer = threading.Timer(timeout_s, end)
        timer.start()
        try:
            yield process
            process.wait()
        finally:
            timer.cancel()
