"""What a tidy module is: short, with a docstring, and nothing left lying about."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60

DOCSTRING = re.compile(r'(?:\s|#.*\n)*r?"""\s*[^\s"]')
# Spelled in pieces, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
# What belongs to the place where code is written and not to the code.
WORKPLACE = re.compile(
    r"(?<![\w.])/(?:wo" + r"rk|tmp/he" + r"lm)/"
    r"|\b(?:cla" + r"ude|anth" + r"ropic|chat" + r"gpt|open" + r"ai|co" + r"pilot|ll" + r"m)\b"
    r"|\bai[ -](?:assist|generat|agent)"
    r"|\bpy" + r"pi\.org|\bpythonhos" + r"ted\b|\brepo1\.mav" + r"en\b",
    re.IGNORECASE,
)


def leftovers(text: str) -> Iterator[str]:
    """One sentence for each unfinished mark or word of the workplace, with its line."""
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern in (UNFINISHED, WORKPLACE):
            match = pattern.search(line)
            if match:
                yield f"line {number}: {match[0]!r}"


def has_docstring(source: str) -> bool:
    """Whether a module begins with a docstring, below comments at most."""
    return DOCSTRING.match(source) is not None


def function_lengths(source: str) -> Iterator[tuple[str, int]]:
    """Qualified name and length in lines of each function, its docstring not counted."""
    yield from _lengths(ast.parse(source), "")


def unused_names(source: str, read_elsewhere: Set[str] = frozenset()) -> list[str]:
    """The names of a module that it defines and nobody reads; what is decorated is registered."""
    tree = ast.parse(source)
    defined = [name for node in tree.body for name in _names(node)]
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    read = {node.id for node in nodes if isinstance(node.ctx, ast.Load)} | read_elsewhere
    return [name for name in defined if not name.startswith("__") and name not in read]


def names_read_elsewhere(source: str) -> Iterator[tuple[str, str]]:
    """(module, name) of each name that a module takes from another one."""
    tree = ast.parse(source)
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.module or "", alias.name
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield modules.get(node.value.id, ""), node.attr


def _names(node: ast.stmt) -> Iterator[str]:
    """What a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if not node.decorator_list or isinstance(node, ast.ClassDef):
            yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


def imported_packages(source: str) -> set[str]:
    """The top-level packages that a module imports, wherever it does."""
    tree = list(ast.walk(ast.parse(source)))
    plain = {alias.name for node in tree if isinstance(node, ast.Import) for alias in node.names}
    named = {node.module or "" for node in tree if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in plain | named}


def _lengths(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, _lines(child) - _docstring_lines(child)
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _lengths(child, f"{prefix}{child.name}.")
        else:
            yield from _lengths(child, prefix)


def _docstring_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return _lines(function.body[0]) if ast.get_docstring(function) is not None else 0


def _lines(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1
