"""Finds the Java that the embedded servers and Spark run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streaming.errors import HelmstreamError

MIN_JAVA_MAJOR = 17
_PROBE_TIMEOUT_S = 30
_VERSION = re.compile(r'version "(?P<text>(?P<first>\d+)(?:\.(?P<second>\d+))?[^"]*)"')


class JavaMissing(HelmstreamError):
    """No Java executable was found, or the one found does not run."""

    exit_code = 3

    def __init__(self, looked_at: str, found: str = "nothing") -> None:
        super().__init__(
            f"no working Java found: looked at {looked_at}, found {found}; "
            f"install Java {MIN_JAVA_MAJOR} or newer, or set JAVA_HOME"
        )
        self.looked_at = looked_at
        self.found = found


class JavaTooOld(HelmstreamError):
    """The Java found is older than Spark and Kafka need."""

    exit_code = 3

    def __init__(self, executable: Path, version: str) -> None:
        super().__init__(
            f"Java {version} at {executable} is too old: Java {MIN_JAVA_MAJOR} or newer is needed; "
            "set JAVA_HOME to a newer one"
        )
        self.executable = executable
        self.version = version


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java: its executable and version."""

    executable: Path
    version: str


def find_java(env: Mapping[str, str] | None = None) -> Java:
    """Find Java by JAVA_HOME, then PATH, as Spark does, and check its version.

    Raises JavaMissing (none there, or it does not answer) and JavaTooOld (below 17).
    """
    environment = os.environ if env is None else env
    executable = _executable(environment)
    text = _version_text(executable)
    match = _VERSION.search(text)
    if match is None:
        raise JavaMissing(str(executable), f"an unreadable version {text.strip()[:200]!r}")
    major = int(match["first"])
    if major == 1 and match["second"]:  # up to Java 8 the version was written 1.8
        major = int(match["second"])
    if major < MIN_JAVA_MAJOR:
        raise JavaTooOld(executable, match["text"])
    return Java(executable, match["text"])


def _executable(environment: Mapping[str, str]) -> Path:
    home = environment.get("JAVA_HOME", "")
    if home:
        executable = Path(home) / "bin" / "java"
        if not executable.is_file():
            raise JavaMissing(f"JAVA_HOME={home}", "no bin/java in it")
        return executable
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is None:
        raise JavaMissing("JAVA_HOME (not set) and PATH")
    return Path(on_path)


def _version_text(executable: Path) -> str:
    try:
        probe = subprocess.run(
            [str(executable), "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissing(str(executable), f"an executable that does not run ({error})") from error
    return probe.stderr + probe.stdout
