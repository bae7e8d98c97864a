"""What principals of Kerberos are called here (sasl.kerberos.principal.to.local.rules)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streaming.security.mapping_rules import in_case, replaced_by

_DEFAULT = "DEFAULT"
_RULE = re.compile(
    r"RULE:\[(?P<parts>\d+):(?P<format>[^\]]*)\](\((?P<about>[^)]*)\))?"
    r"(s/(?P<pattern>[^/]*)/(?P<replacement>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
_PRINCIPAL = re.compile(r"(?P<first>[^/@]*)(/(?P<second>[^/@]*))?@(?P<realm>[^/@]*)")
_PART = re.compile(r"\$(\d+)")
_NOT_SHORT = re.compile("[/@]")


class NoName(ValueError):
    """A principal has no name here; the message says why."""


class NameRule(Protocol):
    """Says what some principals are called."""

    def apply(self, parts: Sequence[str], default_realm: str, /) -> str | None:
        """Return the name of who has this realm and parts, None when the rule is not about it.

        Raises NoName when there is none.
        """
        ...


@dataclass(frozen=True, slots=True)
class WrittenRule:
    """A rule about principals of so many parts (KerberosRule).

    format: what is made of the realm ($0) and the parts ($1, $2); about: what that has to be like;
    pattern: what becomes the replacement in it, the first time or every time.
    """

    parts: int
    format: str
    about: re.Pattern[str] | None
    pattern: re.Pattern[str] | None
    replacement: str
    every_time: bool
    case: str

    def apply(self, parts: Sequence[str], _: str) -> str | None:
        """Return the name of who has this realm and parts; raises NoName."""
        if len(parts) != self.parts + 1:
            return None
        name = _PART.sub(lambda found: _part(parts, int(found[1])), self.format)
        if self.about is not None and not self.about.fullmatch(name):
            return None
        if self.pattern is not None:
            made = replaced_by(self.replacement)
            name = self.pattern.sub(made, name, count=0 if self.every_time else 1)
        if _NOT_SHORT.search(name):
            raise NoName(f"a rule makes {name!r} of {parts}, which is not short")
        return in_case(name, self.case)


@dataclass(frozen=True, slots=True)
class DefaultRule:
    """Calls principals of the default realm by their first part."""

    def apply(self, parts: Sequence[str], default_realm: str) -> str | None:
        """Return the first part of who has that realm."""
        return parts[1] if parts[0] == default_realm else None


def name_rules(text: str) -> tuple[NameRule, ...]:
    """Return the rules between commas; raises ValueError saying what is wrong."""
    return tuple(map(_rule, map(str.strip, text.split(","))))


def short_name(rules: Sequence[NameRule], principal: str, default_realm: str) -> str:
    """Return what a principal such as kafka/host@REALM is called; raises NoName."""
    found = _PRINCIPAL.fullmatch(principal)
    if found is None:
        raise NoName(f"{principal!r} is no principal with a realm")
    second = [] if found["second"] is None else [found["second"]]
    parts = [found["realm"], found["first"], *second]
    for rule in rules:
        name = rule.apply(parts, default_realm)
        if name is not None:
            return name
    raise NoName(f"no rule of sasl.kerberos.principal.to.local.rules is about {principal!r}")


def _rule(text: str) -> NameRule:
    if text == _DEFAULT:
        return DefaultRule()
    found = _RULE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no rule")
    return WrittenRule(
        int(found["parts"]),
        found["format"],
        _pattern(found["about"]),
        _pattern(found["pattern"]),
        found["replacement"] or "",
        bool(found["all"]),
        found["case"] or "",
    )


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text, re.ASCII)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error


def _part(parts: Sequence[str], number: int) -> str:
    if number >= len(parts):
        raise NoName(f"a rule asks for part {number} of {parts}")
    return parts[number]
