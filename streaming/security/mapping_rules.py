"""What the names in certificates are made into (KIP-371, SslPrincipalMapper), and how Java's
regular expressions make one text of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))?\s*(?:,|$)")
_BACK_REFERENCE = re.compile(r"\\(.)|\$([0-9]+)")


def in_case(name: str, case: str) -> str:
    """Return a name in lower case (L), upper case (U), or as it is."""
    return {"L": name.lower(), "U": name.upper()}.get(case, name)


def replaced_by(replacement: str) -> Callable[[re.Match[str]], str]:
    """Return what makes a replacement in Java's form ($1, and \\ before what is meant literally) of
    a match; a group that there is not stands for itself.
    """

    def replaced(match: re.Match[str]) -> str:
        groups = match.re.groups

        def part(found: re.Match[str]) -> str:
            if found[1] is not None:
                return found[1]
            digits = found[2]
            used = 1
            while used < len(digits) and int(digits[: used + 1]) <= groups:
                used += 1
            number, rest = int(digits[:used]), digits[used:]
            return (match[number] or "") + rest if number <= groups else found[0]

        return _BACK_REFERENCE.sub(part, replacement)

    return replaced


@dataclass(frozen=True, slots=True)
class MappingRule:
    """One of ssl.principal.mapping.rules (KIP-371): a pattern of None takes a name as it is."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """Return what becomes of a distinguished name, None when the rule is not about it."""
        if self.pattern is None:
            return name
        if not self.pattern.fullmatch(name):
            return None
        return in_case(self.pattern.sub(replaced_by(self.replacement), name), self.case)


def mapping_rules(text: str) -> tuple[MappingRule, ...]:
    """Return the rules of ssl.principal.mapping.rules; raises ValueError saying what is wrong."""
    rules: list[MappingRule] = []
    at = 0
    while at < len(text):
        found = _RULE.match(text, at)
        if found is None:
            raise ValueError(f"{text[at:]!r} does not begin with a rule")
        at = found.end()
        if found[1]:
            rules.append(MappingRule())
        elif found[2] is not None:
            try:
                rules.append(MappingRule(re.compile(found[2], re.ASCII), found[3], found[4]))
            except re.error as error:
                raise ValueError(f"{found[2]!r} is no regular expression: {error}") from error
    return tuple(rules)
