"""Functions of Java's put together, so that much is done in a JVM for one call from here.

Each call through py4j takes a tenth of a millisecond: one for every object of a list would be too
slow. Method handles (java.lang.invoke) take the calls that are always the same into one.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from streaming.embedded.jvm import SmallJvm

FUNCTION = "java.util.function.Function"
BI_FUNCTION = "java.util.function.BiFunction"
UNARY_OPERATOR = "java.util.function.UnaryOperator"


class JavaFunctions:
    """Makes functions of one JVM; all methods are to be called `with asked()`."""

    def __init__(self, jvm: SmallJvm) -> None:
        """Take a JVM, which starts if it has not."""
        self.packages = jvm.packages()
        self._jvm = jvm
        self._invoke = self.packages.java.lang.invoke
        self._handles = self._invoke.MethodHandles
        self._lookup = self._handles.publicLookup()
        self._class = functools.cache(self._find_class)
        self._proxies = self._invoke.MethodHandleProxies
        self._proxy = self.packages.java.lang.reflect.Proxy
        self._interface = functools.cache(self._as_interfaces)
        as_list = self.method("java.util.Arrays", "asList").asFixedArity()
        self._as_list = self.as_interface(FUNCTION, as_list)

    def the_class(self, name: str) -> Any:
        """Return a class by its full name."""
        return self._class(name)

    def constructor(self, class_name: str, parameters: Sequence[int]) -> Any:
        """Return what makes objects of a class: with as many parameters as the first of the numbers
        says with which it has a constructor, one of each at most.
        """
        made = {
            one.getParameterCount(): one for one in self.the_class(class_name).getConstructors()
        }
        return self._lookup.unreflectConstructor(made[next(filter(made.__contains__, parameters))])

    def method(self, class_name: str, name: str, *, of: Any = None) -> Any:
        """Return what calls a method that is not overloaded, of an object or of what it is given
        first; None if the class has none of the name.
        """
        for one in self.the_class(class_name).getMethods():
            if one.getName() == name:
                handle = self._lookup.unreflect(one)
                return handle if of is None else handle.bindTo(of)
        return None

    def with_values(self, handle: Any, at: int, *values: Any) -> Any:
        """Return a function with some parameters given, from one on."""
        return self._handles.insertArguments(handle, at, self._array("java.lang.Object", values))

    def with_wider(self, handle: Any, at: int) -> Any:
        """Return a function whose parameter is an int instead of a smaller number."""
        wider = handle.type().changeParameterType(at, self.packages.java.lang.Integer.TYPE)
        return self._handles.explicitCastArguments(handle, wider)

    def after(self, handle: Any, at: int, before: Any) -> Any:
        """Return a function that gets a parameter through another function."""
        fitting = before.asType(before.type().changeReturnType(handle.type().parameterType(at)))
        filters = self._array("java.lang.invoke.MethodHandle", [fitting])
        return self._handles.filterArguments(handle, at, filters)

    def in_words(self, handle: Any) -> Any:
        """Return a function that returns, as a text, what another one does."""
        text = self.method("java.lang.Object", "toString")
        anything = handle.asType(handle.type().changeReturnType(self.the_class("java.lang.Object")))
        return self._handles.filterReturnValue(anything, text)

    def as_interface(self, interface: str, handle: Any) -> Any:
        """Return a function as an object of an interface that has one method."""
        return self._proxies.asInterfaceInstance(self.the_class(interface), handle)

    def answering(self, interface: str, values: Mapping[str, Any]) -> Any:
        """Return an object of an interface whose methods return values, by their names."""
        by_method = self._value_of_method.bindTo(dict(values))
        handler = self.as_interface("java.lang.reflect.InvocationHandler", by_method)
        return self._proxy.newProxyInstance(*self._interface(interface), handler)

    def mapped(self, operator: Any, texts: Sequence[str]) -> Any:
        """Return a list of what a UNARY_OPERATOR makes of each text, in a few calls."""
        separator = _apart_from("".join(texts))
        pattern = self.packages.java.util.regex.Pattern
        parts = pattern.compile(separator, pattern.LITERAL).split(separator.join(texts), -1)
        found = self.packages.java.util.ArrayList(self._as_list.apply(parts))
        found.replaceAll(operator)
        return found

    @functools.cached_property
    def _value_of_method(self) -> Any:
        """What returns, of a map, an object, a method of its and arguments, what the map has for
        the method's name.
        """
        name_of = self.method("java.lang.reflect.Method", "getName")
        of_method = self.after(self.method("java.util.Map", "get"), 1, name_of)
        anything = self.the_class("java.lang.Object")
        for at, kind in ((1, anything), (3, self._array("java.lang.Object", ()).getClass())):
            kinds = self._array("java.lang.Class", [kind])
            of_method = self._handles.dropArguments(of_method, at, kinds)
        return of_method

    def _find_class(self, name: str) -> Any:
        return self.packages.java.lang.Class.forName(name)

    def _as_interfaces(self, name: str) -> tuple[Any, Any]:
        """Return an interface's class loader, and an array of it."""
        found = self.the_class(name)
        return found.getClassLoader(), self._array("java.lang.Class", [found])

    def _array(self, class_name: str, values: Sequence[Any]) -> Any:
        return self._jvm.array(class_name, values)


def _apart_from(text: str) -> str:
    """Return a character that is not in a text."""
    used = set(text)
    return next(one for one in map(chr, count(1)) if one not in used)
