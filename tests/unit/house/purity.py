"""Finds what a pure module may not do: impure imports, impure built-ins, impure attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

# Everything a state machine needs; what is not here is asked for in a review.
ALLOWED_IMPORTS = frozenset(
    {
        "__future__", "abc", "array", "base64", "binascii", "bisect", "collections", "copy",
        "dataclasses", "enum", "functools", "heapq", "itertools", "json", "math", "operator", "re",
        "string", "struct", "types", "typing", "zlib",
        "numpy", "orjson", "state",
    }
)  # fmt: skip
BANNED_BUILTINS = frozenset(
    {
        "__import__", "breakpoint", "compile", "eval", "exec", "globals", "hash", "id", "input",
        "open", "print",
    }
)  # fmt: skip
# Submodules of allowed libraries that draw lots or touch files.
BANNED_ATTRIBUTES = frozenset(
    {
        "numpy.random", "numpy.memmap", "numpy.fromfile", "numpy.load", "numpy.save",
        "numpy.savez", "numpy.loadtxt", "numpy.savetxt",
    }
)  # fmt: skip


def impurities(source: str) -> Iterator[str]:
    """One sentence for each impure thing in a module's source, with its line."""
    tree = ast.parse(source)
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        for name in _imported(node):
            if name.partition(".")[0] not in ALLOWED_IMPORTS or _is_banned(name):
                yield f"line {line}: imports {name}"
        if isinstance(node, ast.Name) and _is_read(node) and node.id in BANNED_BUILTINS:
            yield f"line {node.lineno}: uses {node.id}()"
        if isinstance(node, ast.Attribute):
            name = _dotted(node, aliases)
            if name in BANNED_ATTRIBUTES:
                yield f"line {node.lineno}: uses {name}"


def _is_read(name: ast.Name) -> bool:
    """A field may be called `id`; only the use of the built-in is impure."""
    return isinstance(name.ctx, ast.Load)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module or '.'}.{alias.name}" for alias in node.names]
    return []


def _is_banned(name: str) -> bool:
    return any(name == banned or name.startswith(f"{banned}.") for banned in BANNED_ATTRIBUTES)


def _aliases(tree: ast.AST) -> dict[str, str]:
    return {
        alias.asname: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.asname
    }


def _dotted(node: ast.expr, aliases: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return aliases.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, aliases)}.{node.attr}"
    return ""
