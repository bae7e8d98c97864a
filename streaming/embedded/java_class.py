"""A class of the brokers' own in a JVM: what is made of it, anew when the JVM is another one."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
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


class OncePerJvm(Generic[T]):
    """What is made once in each JVM, anew when it is another one; safe from any thread."""

    def __init__(self, jvm: SmallJvm, make: Callable[[], T]) -> None:
        self._jvm = jvm
        self._make = make
        self._making = threading.Lock()
        self._packages: Any = None
        self._made: T | None = None

    def get(self) -> T:
        """Return what is made; to be called `with asked()`."""
        with self._making:
            packages = self._jvm.packages()
            if self._made is None or packages is not self._packages:
                self._made = self._make()
                self._packages = packages
            return self._made


class MadeOf(Generic[T]):
    """What is made of a class, once in each JVM; safe from any thread."""

    def __init__(
        self, jvm: SmallJvm, class_name: str, interfaces: Sequence[str], make: Callable[[Any], T]
    ) -> None:
        """interfaces: of which the class has to be of one; make: gets a new object of the class."""
        self._jvm = jvm
        self._class_name = class_name
        self._interfaces = interfaces
        self._once = OncePerJvm(jvm, lambda: make(self.new()))

    def get(self) -> T:
        """Return what is made of it; to be called `with asked()`."""
        return self._once.get()

    def new(self) -> Any:
        """Return one more object of the class; to be called `with asked()`."""
        return java_class(self._jvm.packages(), self._class_name)()

    def is_of(self, interface: str) -> bool:
        """Return whether it is of an interface, which may be one that is not there; to be called
        `with asked()`.
        """
        found = self._found(interface)
        made = self._jvm.packages().java.lang.Class.forName(self._class_name)
        return found is not None and bool(found.isAssignableFrom(made))

    def _found(self, interface: str) -> Any:
        try:
            with asked():
                return self._jvm.packages().java.lang.Class.forName(interface)
        except JavaException:
            return None

    def check(self, attempt: Callable[[], object] | None = None) -> None:
        """See that it is of an interface, and an attempt to use it does not fail: to make of it
        what is made, if no other is given. Raises ClassUnusable.
        """
        try:
            with asked():
                if not any(map(self._found, self._interfaces)):
                    raise ClassUnusable(f"{self._interfaces[0]} is not there")
                if not any(map(self.is_of, self._interfaces)):
                    raise ClassUnusable(f"it is no {' and no '.join(self._interfaces)}")
                (attempt or self.get)()
        except (JavaException, JvmFailed) as error:
            raise ClassUnusable(str(error)) from error
