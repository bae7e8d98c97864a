"""Functions of Java's put together in a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from streaming.embedded.java_functions import FUNCTION, UNARY_OPERATOR, JavaFunctions
from streaming.embedded.jvm import JavaException, SmallJvm, asked

pytestmark = pytest.mark.filterwarnings("ignore:subprocess:ResourceWarning")


@pytest.fixture(scope="module")
def functions() -> Iterator[JavaFunctions]:
    jvm = SmallJvm(["-Xmx64m"])
    yield JavaFunctions(jvm)
    jvm.close()


def test_what_is_always_the_same_is_given_once(functions: JavaFunctions) -> None:
    locale = functions.constructor("java.util.Locale", (7, 3, 2))
    assert locale.type().parameterCount() == 3  # it has one with two as well
    german = functions.with_values(functions.with_values(locale, 2, ""), 0, "de")
    assert functions.as_interface(FUNCTION, functions.in_words(german)).apply("at") == "de_AT"
    country = functions.method("java.util.Locale", "getCountry")
    of_german = functions.as_interface(FUNCTION, functions.after(country, 0, german))
    assert of_german.apply("ch") == "CH"


def test_a_list_of_any_texts_is_made_of_them(functions: JavaFunctions) -> None:
    concat = functions.method("java.lang.String", "concat")
    marked = functions.as_interface(UNARY_OPERATOR, functions.with_values(concat, 1, "!"))
    for texts in (["a"], ["", "b", ""], ["\x01", "\x02", "ü, 🦊\n"]):
        assert list(functions.mapped(marked, texts)) == [f"{one}!" for one in texts]


def test_an_interface_answers_with_values(functions: JavaFunctions) -> None:
    entry = functions.answering("java.util.Map$Entry", {"getKey": "k", "getValue": [1, 2]})
    assert (entry.getKey(), list(entry.getValue())) == ("k", [1, 2])


def test_what_java_raises_is_raised_here(functions: JavaFunctions) -> None:
    read = functions.as_interface(FUNCTION, functions.method("java.util.UUID", "fromString"))
    assert read.apply(f"{UUID(int=7)}").toString() == f"{UUID(int=7)}"
    with pytest.raises(JavaException, match="Invalid UUID string: seven"), asked():
        read.apply("seven")


def test_a_method_that_is_not_there_is_none(functions: JavaFunctions) -> None:
    assert functions.method("java.lang.String", "explode") is None
