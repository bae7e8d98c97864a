"""Reads the file in which brokers keep who they are: that of Java's authentication service.

    KafkaServer {
        org.apache.kafka.common.security.scram.ScramLoginModule required
        username="cluster" password="...";
    };

Its grammar is that of javax.security.auth.login.Configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |"(?P<string>(?:[^"\\\n]|\\.)*)"
    |(?P<word>(?!/\*)[^\s{};="]+)
    |(?P<mark>[{};=])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)")
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_END = ""


class JaasError(ValueError):
    """A file is not of that form; the message says where and why, and repeats no password."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One entry of a section; name: its Java class without the package."""

    name: str
    options: Mapping[str, str] = field(repr=False)  # passwords are among them


Sections = Mapping[str, list[LoginModule]]


def parse_jaas(text: str) -> Sections:
    """Return the login modules of each section by its name, in their order; raises JaasError."""
    tokens = _Tokens(text)
    sections: dict[str, list[LoginModule]] = {}
    while name := tokens.word("a section's name", or_end=True):
        tokens.mark("{")
        if name in sections:
            raise tokens.error(f"section {name} is there twice")
        sections[name] = list(_modules(tokens))
        tokens.mark(";")
    return sections


def _modules(tokens: _Tokens) -> Iterator[LoginModule]:
    while not tokens.takes("}"):
        java_class = tokens.word("a login module")
        if tokens.word("required").lower() not in _FLAGS:
            raise tokens.error(f"one of {', '.join(sorted(_FLAGS))} was expected")
        options: dict[str, str] = {}
        while not tokens.takes(";"):
            option = tokens.word("an option or ;")
            tokens.mark("=")
            options[option] = tokens.word("an option's value")
        yield LoginModule(java_class.rpartition(".")[2], options)


class _Tokens:
    """What a file consists of, one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._next = ("", _END)
        self._advance()

    def takes(self, mark: str) -> bool:
        """Go on behind a mark if it comes next, and return whether it did."""
        if self._next != ("mark", mark):
            return False
        self._advance()
        return True

    def mark(self, mark: str) -> None:
        """Go on behind a mark; raises JaasError."""
        if not self.takes(mark):
            raise self.error(f"{mark} was expected")

    def word(self, what: str, or_end: bool = False) -> str:
        """Return a word or what is in quotes; "" at the end where it may be. Raises JaasError."""
        kind, text = self._next
        if kind not in ("word", "string") and not (or_end and kind == _END):
            raise self.error(f"{what} was expected")
        if kind:
            self._advance()
        return text

    def error(self, reason: str) -> JaasError:
        line = self._text.count("\n", 0, self._at) + 1
        return JaasError(f"line {line}: {reason}")

    def _advance(self) -> None:
        while self._at < len(self._text):
            found = _TOKEN.match(self._text, self._at)
            if found is None:
                raise self.error("a quote or comment has no end")
            self._at = found.end()
            kind = str(found.lastgroup)
            if kind != "space":
                self._next = (
                    kind,
                    self._unescaped(found[kind]) if kind == "string" else found[kind],
                )
                return
        self._next = ("", _END)

    def _unescaped(self, text: str) -> str:
        if "${" in text:
            raise self.error("properties of Java (${...}) are not known here")
        return _ESCAPED.sub(lambda found: _character(found[1]), text)


def _character(escaped: str) -> str:
    if escaped.isdigit() and escaped < "8":
        return chr(int(escaped, 8))
    return _CONTROLS.get(escaped, escaped)
