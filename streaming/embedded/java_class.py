"""A class of the brokers' own in a JVM: what is made of it, anew when the JVM is another one."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streaming.embedded.jvm import JavaException, JvmFailed, SmallJvm, asked, java_class

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JavaClass:
    """Which class it is.

    path: of the class, its libraries, and Kafka's; config: what it is configured with, as brokers
    give it properties of theirs; options: of its JVM.
    """

    name: str
    path: str
    config: Mapping[str, str]
    options: tuple[str, ...] = ()


@functools.cache
def shared_jvm(class_path: str, options: tuple[str, ...]) -> SmallJvm:
    """Return the JVM of this process for all classes of one path, which know each other's objects
    then, as in a broker.
    """
    return SmallJvm(["-Xmx512m", *options], class_path)


class ClassUnusable(Exception):
    """A class cannot be used; the message says why."""


class MadeOf(Generic[T]):
    """What is made of a class, once in each JVM; safe from any thread."""

    def __init__(
        self, jvm: SmallJvm, class_name: str, interface: str, make: Callable[[Any], T]
    ) -> None:
        """interface: which the class has to be of; make: gets a new object of the class."""
        self._jvm = jvm
        self._class_name = class_name
        self._interface = interface
        self._make = make
        self._making = threading.Lock()
        self._packages: Any = None
        self._made: T | None = None

    def get(self) -> T:
        """Return what is made of it; to be called `with asked()`."""
        with self._making:
            packages = self._jvm.packages()
            if self._made is None or packages is not self._packages:
                self._made = self._make(self.new())
                self._packages = packages
            return self._made

    def new(self) -> Any:
        """Return one more object of the class; to be called `with asked()`."""
        return java_class(self._jvm.packages(), self._class_name)()

    def check(self, attempt: Callable[[], object] | None = None) -> None:
        """See that it is of the interface, and an attempt to use it does not fail: to make of it
        what is made, if no other is given. Raises ClassUnusable.
        """
        try:
            with asked():
                find = self._jvm.packages().java.lang.Class.forName
                if not find(self._interface).isAssignableFrom(find(self._class_name)):
                    raise ClassUnusable(f"it is no {self._interface}")
                (attempt or self.get)()
        except (JavaException, JvmFailed) as error:
            raise ClassUnusable(str(error)) from error
