"""A small JVM of a process, for what only Java has: asked through py4j, which Spark brings along.

All calls block; any thread may make them.
"""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import ERROR, REFERENCE_TYPE, Py4JError, Py4JJavaError, get_return_value

from streaming.embedded.java import find_java
from streaming.errors import HelmstreamError

_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_ANSWER_S = 120.0
"""Longer than Kerberos takes: half a minute for each of a realm's servers, three times."""
_END_S = 30.0


class JvmFailed(ConnectionError):
    """The JVM did not start, or is gone; the next call has another one."""


class JavaException(Exception):
    """Java raised something: `raised`; the message is that of it and of its causes."""

    def __init__(self, message: str, raised: Any) -> None:
        super().__init__(message)
        self.raised = raised


@dataclass(frozen=True, slots=True, eq=False)
class KeptObject:
    """An object of a JVM that is handed on and kept; the same as no other.

    packages: of its JVM. Objects are known by their numbers, which each JVM counts anew.
    """

    packages: Any
    java: Any

    def of(self, packages: Any) -> Any:
        """Return it for use in the JVM of these packages; raises JvmFailed if that is another one,
        in which something else has its number.
        """
        if packages is not self.packages:
            raise JvmFailed("a JVM of this process is gone, with what it knew of a client")
        return self.java


class _Client(GatewayClient):  # type: ignore[misc]
    """py4j's, which raises what Java raised. pyspark, once it is imported, has py4j ask Spark's own
    JVM about it otherwise (install_exception_handler), in which something else has its number.
    """

    def send_command(self, command: str, retry: bool = True, binary: bool = False) -> Any:
        answer = super().send_command(command, retry, binary)
        if not binary and answer.startswith(ERROR + REFERENCE_TYPE):
            get_return_value(answer, self)
        return answer


class _Gateway(JavaGateway):  # type: ignore[misc]
    def _create_gateway_client(self) -> _Client:
        return _Client(gateway_parameters=self.gateway_parameters)


class SmallJvm:
    """A JVM that starts when it is first needed, is started again when it is gone, and ends with
    its process; it answers who knows a secret that is made at its start.
    """

    def __init__(self, options: Sequence[str], class_path: str = "") -> None:
        """options: for Java; class_path: what it finds classes in beside its own."""
        self._options = [*_OPTIONS, *options]
        self._class_path = class_path
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._gateway: JavaGateway | None = None

    def packages(self) -> Any:
        """Return Java's packages as attributes, the same as long as the JVM is; to be asked `with
        asked()`.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            assert self._gateway is not None
            return self._gateway.jvm

    def array(self, class_name: str, values: Sequence[Any]) -> Any:
        """Return an array of Java's; to be asked `with asked()`, as `packages`."""
        packages = self.packages()
        gateway = self._gateway
        assert gateway is not None
        found = gateway.new_array(java_class(packages, class_name), len(values))
        for at, value in enumerate(values):
            found[at] = value
        return found

    def close(self) -> None:
        """End it before its process does."""
        with self._lock:
            if self._process is not None and self._gateway is not None:
                self._gateway.shutdown()
                if self._process.stdin is not None:
                    self._process.stdin.close()
                self._process.wait(_END_S)  # what it has open is closed by a thread of py4j's
            self._process = self._gateway = None

    def _start(self) -> None:
        logging.getLogger("py4j").setLevel(logging.WARNING)  # it would log all that is said
        port, secret, self._process = launch_gateway(
            classpath=self._class_path,
            javaopts=self._options,
            java_path=str(find_java().executable),
            die_on_exit=True,
            enable_auth=True,
            return_proc=True,
        )
        parameters = GatewayParameters(
            port=port, auth_token=secret, read_timeout=_ANSWER_S, auto_convert=True
        )
        self._gateway = _Gateway(gateway_parameters=parameters)


def java_class(packages: Any, name: str) -> Any:
    """Return a class by its full name, to be called for a new object of it."""
    return reduce(getattr, name.split("."), packages)


@contextmanager
def asked() -> Iterator[None]:
    """Ask Java; raises JavaException and JvmFailed."""
    try:
        yield
    except Py4JJavaError as error:
        raised = error.java_exception
        raise JavaException("; ".join(_messages(raised)), raised) from error
    except (Py4JError, HelmstreamError, OSError, ValueError) as error:
        raise JvmFailed(f"a JVM of this process failed: {error}") from error


def _messages(exception: Any) -> Iterator[str]:
    """Yield what an exception of Java's says, and what its causes do."""
    try:
        while exception is not None:
            yield str(exception.getMessage())
            exception = exception.getCause()
    except Py4JError:
        yield "the JVM is gone"
